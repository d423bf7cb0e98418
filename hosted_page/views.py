"""The payer's pages. One address shows what is true now; each POST answers 303."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_GET, require_POST, require_safe

from checkout import sharing, splitting
from checkout.models import Checkout
from checkout.states import Status
from checkout.transitions import NotPayable, OperationInProgress
from config.lib import clock
from hosted_page import brand, pages, payer, sign_in, truth
from hosted_page.forms import SplitForm
from hosted_page.models import SignInCode
from payments import money
from payments.models import Merchant


@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the step that is next, or what became of the money."""
    checkout = pages.checkout_of(request)
    customer_uuid = payer.customer_of(request, checkout)
    is_lead = customer_uuid is not None and customer_uuid == checkout.lead_id
    found = truth.tell(checkout, now=clock.now(), is_lead=is_lead)
    if found is not None:
        return _status(request, checkout, found, is_lead=is_lead)
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(
            headers={"HX-Refresh": "true"}
        )  # the status page asks, and there is none any more
    if customer_uuid is None:
        return _phone_or_code(request, checkout)
    if not is_lead:
        return _elsewhere(request, checkout)
    if checkout.people is None:
        return _split(request, checkout)
    return pages.go(checkout, "pay_card")


def _status(request: HttpRequest, checkout: Checkout, found: truth.Truth, *, is_lead: bool) -> HttpResponse:
    fragment = request.headers.get("HX-Request") == "true"
    context = {
        **vars(found),
        "amount": money.display(checkout.amount, checkout.currency),
        "poll_url": pages.address("pay", checkout),
        "change_card_action": pages.address("pay_another_card", checkout) if found.may_change_card else "",
        "return_url_path": "" if found.live and found.state != "refunding" else _way_out(checkout),
        "shares": truth.shares(checkout) if is_lead and found.state in ("held", "confirmed") else [],
    }
    response = pages.show(request, checkout, "_status" if fragment else "status", context, may_cancel=False)
    if is_lead and checkout.lead_id is not None:
        payer.remember(response, checkout, checkout.lead_id)
    return response


def _way_out(checkout: Checkout) -> str:
    paid = checkout.captured_at is not None or checkout.status == Status.AUTHORIZED
    return checkout.return_url if paid else checkout.cancel_url


def _phone_or_code(request: HttpRequest, checkout: Checkout) -> HttpResponse:
    waiting = sign_in.waiting(checkout, payer.browser_of(request))
    if waiting is None or "change" in request.GET:
        return _phone(request, checkout)
    return _code(request, checkout, waiting)


def _phone(request: HttpRequest, checkout: Checkout, *, value: str = "", error: str = "") -> HttpResponse:
    context = {"action": pages.address("pay_phone", checkout), "value": value, "error": error}
    return pages.show(request, checkout, "phone", context, status=422 if error else 200)


def _code(request: HttpRequest, checkout: Checkout, waiting: SignInCode, *, error: str = "") -> HttpResponse:
    since = (clock.now() - waiting.created_at).total_seconds()
    context = {
        "action": pages.address("pay_code", checkout),
        "error": error,
        "masked_phone": f"•••• {waiting.phone[-4:]}",
        "resend_action": pages.address("pay_resend", checkout),
        "resend_in": max(0, round(sign_in.GAP.total_seconds() - since)),
        "change_url": f"{pages.address('pay', checkout)}&change=1",
        "shown_code": payer.shown_code(request) if settings.SANDBOX else "",
    }
    return pages.show(request, checkout, "code", context, status=422 if error else 200)


@require_POST
def phone(request: HttpRequest) -> HttpResponse:
    """Send a code to the number that was typed."""
    checkout, typed = pages.checkout_of(request), request.POST.get("phone", "")
    try:
        number = sign_in.parse_phone(typed, checkout.merchant)
    except sign_in.InvalidPhone:
        return _phone(
            request, checkout, value=typed[:40], error="Enter a mobile number, such as 07700 900123."
        )
    return _send_code(request, checkout, number, typed)


@require_POST
def resend(request: HttpRequest) -> HttpResponse:
    """Send a new code to the same number."""
    checkout = pages.checkout_of(request)
    waiting = sign_in.waiting(checkout, payer.browser_of(request))
    if waiting is None:
        return pages.go(checkout)
    return _send_code(request, checkout, waiting.phone, waiting.phone)


def _send_code(request: HttpRequest, checkout: Checkout, number: str, typed: str) -> HttpResponse:
    browser = payer.browser_of(request)
    if checkout.status != Status.CREATED:
        return pages.go(checkout)
    try:
        sent = sign_in.send_code(checkout, number, browser)
    except sign_in.TooManyCodes as refused:
        waiting = sign_in.waiting(checkout, browser)
        if waiting is not None and waiting.phone == number:
            return _code(request, checkout, waiting, error=str(refused))
        return _phone(request, checkout, value=typed[:40], error=str(refused))
    response = pages.go(checkout)
    payer.keep_browser(response, browser)
    payer.show_code(response, sent.shown_code)
    return response


@require_POST
def code(request: HttpRequest) -> HttpResponse:
    """Sign in who enters the right code, and make them the lead."""
    checkout, browser = pages.checkout_of(request), payer.browser_of(request)
    entered = "".join(
        str(int(character)) for character in request.POST.get("code", "") if character.isdecimal()
    )
    waiting = sign_in.waiting(checkout, browser)
    if waiting is None:
        return pages.go(checkout)
    if len(entered) != 6:
        return _code(request, checkout, waiting, error="The code has 6 digits.")
    try:
        customer = sign_in.verify(checkout, browser, entered)
        sharing.join(checkout.pk, customer)
    except sign_in.WrongCode as wrong:
        tries = "1 try" if wrong.tries_left == 1 else f"{wrong.tries_left} tries"
        return _code(request, checkout, waiting, error=f"That code is not right. You have {tries} left.")
    except sign_in.CodeEnded:
        return _phone(request, checkout, error="That code no longer works. Ask for a new one.")
    except (NotPayable, OperationInProgress):
        return pages.go(checkout)
    response = pages.go(checkout)
    payer.remember(response, checkout, customer.pk)
    return response


def _elsewhere(request: HttpRequest, checkout: Checkout) -> HttpResponse:
    """Somebody else has signed in since: one lead at a time."""
    context = {
        "heading": "Somebody else is paying now",
        "paragraphs": ["They signed in on this order after you. You have paid nothing."],
        "link": {"href": f"{pages.address('pay_again', checkout)}", "label": "Sign in again"},
    }
    return pages.show(request, checkout, "message", context)


@require_GET
def again(request: HttpRequest) -> HttpResponse:
    """Start over at the phone step, as nobody."""
    checkout = pages.checkout_of(request)
    response = pages.go(checkout)
    payer.forget(response, checkout)
    return response


@never_cache
def split(request: HttpRequest) -> HttpResponse:
    """Ask who shares the cost; the answer leads to the card."""
    checkout = pages.checkout_of(request)
    if not payer.leads(request, checkout):
        return pages.go(checkout)
    if request.method != "POST":
        return _split(request, checkout)
    form = SplitForm(request.POST, amount=checkout.amount)
    people = form.people_in_all()
    if people is None:
        return _split(request, checkout, error=f"Choose between 2 and {form.most} people.")
    try:
        sharing.split_equally(checkout.pk, people)
    except (NotPayable, OperationInProgress):
        return pages.go(checkout)
    return pages.go(checkout, "pay_card")


def _split(request: HttpRequest, checkout: Checkout, *, error: str = "") -> HttpResponse:
    equal = bool(error) or (checkout.people or 1) > 1
    context = {
        "action": pages.address("pay_split", checkout),
        "error": error,
        "choice": "equal" if equal else "all",
        "people": max(2, checkout.people or 2),
        "shares": _equal_shares(checkout),
        "explain": f"Your card is held for the whole {money.display(checkout.amount, checkout.currency)}."
        " Your mates pay you their shares.",
    }
    return pages.show(request, checkout, "split", context, status=422 if error else 200)


def _equal_shares(checkout: Checkout) -> list[dict[str, Any]]:
    rows = []
    for people in range(2, splitting.most_people(checkout.amount) + 1):
        yours, each = splitting.equally(checkout.amount, people)
        more = money.display(yours - each, checkout.currency)
        note = f"{more} more, so that it adds up" if yours != each else ""
        shown = {
            "each": money.display(each, checkout.currency),
            "yours": money.display(yours, checkout.currency),
        }
        rows.append({"people": people, "note": note, **shown})
    return rows


@require_POST
def cancel(request: HttpRequest) -> HttpResponse:
    """Lead back to the shop; the order stays payable until it expires."""
    return HttpResponseRedirect(pages.checkout_of(request).cancel_url, status=303)


@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def brand_css(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """A merchant's colour as a style sheet; a new colour gets a new address."""
    merchant = get_object_or_404(Merchant, pk=merchant_uuid)
    values = {"--brand": merchant.brand_colour, **brand.properties(merchant.brand_colour)}
    rules = "".join(f"{name}:{value};" for name, value in values.items())
    return HttpResponse(f":root{{{rules}}}\n", content_type="text/css; charset=utf-8")
