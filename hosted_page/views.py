"""The payer's pages. One address shows what is true now; each POST answers 303."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_GET, require_POST, require_safe

from checkout import reading, sharing, splitting, transitions
from checkout.models import Checkout
from checkout.states import Status
from checkout.transitions import MerchantSuspended, NotPayable, OperationInProgress
from config.lib import clock, csp, request_id
from hosted_page import brand, payer, sign_in, summary, truth
from hosted_page.forms import SplitForm
from hosted_page.models import SignInCode
from payments import money, provider
from payments.cause import Cause
from payments.models import Merchant, Payment

# What a bank's refusal means for the person at the page.
DECLINES = {
    "insufficient_funds": "There is not enough money on this card.",
    "expired_card": "This card has expired.",
}
DECLINED = "Your bank declined this card."


@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the step that is next, or what became of the money."""
    checkout = _checkout(request)
    customer_uuid = payer.customer_of(request, checkout)
    is_lead = customer_uuid is not None and customer_uuid == checkout.lead_id
    found = truth.tell(checkout, now=clock.now(), is_lead=is_lead)
    if found is not None:
        return _status(request, checkout, found, is_lead=is_lead)
    if customer_uuid is None:
        return _phone_or_code(request, checkout)
    if not is_lead:
        return _elsewhere(request, checkout)
    if checkout.people is None:
        return _split(request, checkout)
    return _go(checkout, "pay_card")


def _status(request: HttpRequest, checkout: Checkout, found: truth.Truth, *, is_lead: bool) -> HttpResponse:
    fragment = request.headers.get("HX-Request") == "true"
    context = {
        **vars(found),
        "amount": money.display(checkout.amount, checkout.currency),
        "poll_url": _address("pay", checkout),
        "return_url_path": "" if found.live and found.state != "refunding" else _way_out(checkout),
        "shares": truth.shares(checkout) if is_lead and found.state in ("held", "confirmed") else [],
    }
    response = _render(request, checkout, "_status" if fragment else "status", context, may_cancel=False)
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
    context = {"action": _address("pay_phone", checkout), "value": value, "error": error}
    return _render(request, checkout, "phone", context, status=422 if error else 200)


def _code(request: HttpRequest, checkout: Checkout, waiting: SignInCode, *, error: str = "") -> HttpResponse:
    since = (clock.now() - waiting.created_at).total_seconds()
    context = {
        "action": _address("pay_code", checkout),
        "error": error,
        "masked_phone": f"•••• {waiting.phone[-4:]}",
        "resend_action": _address("pay_resend", checkout),
        "resend_in": max(0, round(sign_in.GAP.total_seconds() - since)),
        "change_url": f"{_address('pay', checkout)}&change=1",
        "shown_code": payer.shown_code(request) if settings.SANDBOX else "",
    }
    return _render(request, checkout, "code", context, status=422 if error else 200)


@require_POST
def phone(request: HttpRequest) -> HttpResponse:
    """Send a code to the number that was typed."""
    checkout, typed = _checkout(request), request.POST.get("phone", "")
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
    checkout = _checkout(request)
    waiting = sign_in.waiting(checkout, payer.browser_of(request))
    if waiting is None:
        return _go(checkout)
    return _send_code(request, checkout, waiting.phone, waiting.phone)


def _send_code(request: HttpRequest, checkout: Checkout, number: str, typed: str) -> HttpResponse:
    browser = payer.browser_of(request)
    if checkout.status != Status.CREATED:
        return _go(checkout)
    try:
        sent = sign_in.send_code(checkout, number, browser)
    except sign_in.TooManyCodes as refused:
        waiting = sign_in.waiting(checkout, browser)
        if waiting is not None and waiting.phone == number:
            return _code(request, checkout, waiting, error=str(refused))
        return _phone(request, checkout, value=typed[:40], error=str(refused))
    response = _go(checkout)
    payer.keep_browser(response, browser)
    payer.show_code(response, sent.shown_code)
    return response


@require_POST
def code(request: HttpRequest) -> HttpResponse:
    """Sign in who enters the right code, and make them the lead."""
    checkout, browser = _checkout(request), payer.browser_of(request)
    entered = "".join(
        str(int(character)) for character in request.POST.get("code", "") if character.isdecimal()
    )
    waiting = sign_in.waiting(checkout, browser)
    if waiting is None:
        return _go(checkout)
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
        return _go(checkout)
    response = _go(checkout)
    payer.remember(response, checkout, customer.pk)
    return response


def _elsewhere(request: HttpRequest, checkout: Checkout) -> HttpResponse:
    """Somebody else has signed in since: one lead at a time."""
    context = {
        "heading": "Somebody else is paying now",
        "paragraphs": ["They signed in on this order after you. You have paid nothing."],
        "link": {"href": f"{_address('pay_again', checkout)}", "label": "Sign in again"},
    }
    return _render(request, checkout, "message", context)


@require_GET
def again(request: HttpRequest) -> HttpResponse:
    """Start over at the phone step, as nobody."""
    checkout = _checkout(request)
    response = _go(checkout)
    payer.forget(response, checkout)
    return response


@never_cache
def split(request: HttpRequest) -> HttpResponse:
    """Ask who shares the cost; the answer leads to the card."""
    checkout = _checkout(request)
    if not _is_leads_turn(request, checkout):
        return _go(checkout)
    if request.method != "POST":
        return _split(request, checkout)
    form = SplitForm(request.POST, amount=checkout.amount)
    people = form.people_in_all()
    if people is None:
        return _split(request, checkout, error=f"Choose between 2 and {form.most} people.")
    try:
        sharing.split_equally(checkout.pk, people)
    except (NotPayable, OperationInProgress):
        return _go(checkout)
    return _go(checkout, "pay_card")


def _split(request: HttpRequest, checkout: Checkout, *, error: str = "") -> HttpResponse:
    equal = bool(error) or (checkout.people or 1) > 1
    context = {
        "action": _address("pay_split", checkout),
        "error": error,
        "choice": "equal" if equal else "all",
        "people": max(2, checkout.people or 2),
        "shares": _equal_shares(checkout),
        "explain": f"Your card is held for the whole {money.display(checkout.amount, checkout.currency)}."
        " Your mates pay you their shares.",
    }
    return _render(request, checkout, "split", context, status=422 if error else 200)


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


def _is_leads_turn(request: HttpRequest, checkout: Checkout) -> bool:
    customer_uuid = payer.customer_of(request, checkout)
    return (
        checkout.status == Status.CREATED and customer_uuid is not None and customer_uuid == checkout.lead_id
    )


@never_cache
@require_safe
def card(request: HttpRequest) -> HttpResponse:
    """Send the lead to the provider's card page."""
    checkout = _checkout(request)
    if not _is_leads_turn(request, checkout) or checkout.people is None:
        return _go(checkout)
    bound = signing.dumps([checkout.pk.hex, str(checkout.lead_id)], salt="card")
    form = provider.CardForm(
        subject=checkout.pk,
        return_url=f"{_absolute('pay_paid', checkout)}&{urlencode({'bound': bound})}",
        page=_card_page(checkout),
    )
    response = HttpResponseRedirect(provider.current().open_card_form(form))
    payer.remember(response, checkout, UUID(str(checkout.lead_id)))
    return response


def _card_page(checkout: Checkout) -> dict[str, Any]:
    """What the provider shows around its fields."""
    amount = money.display(checkout.amount, checkout.currency)
    return {
        "order": summary.as_json(summary.of(checkout)),
        "cancel_url_path": _address("pay_cancel", checkout),
        "change_split_url": _address("pay_split", checkout),
        "pay_label": f"Pay {amount}",
        "held_rows": _held_rows(checkout, amount),
        "notice": _decline_notice(checkout),
        "leads_to": [checkout.cancel_url, settings.CHECKOUT_PAGE_URL],
    }


def _held_rows(checkout: Checkout, amount: str) -> list[dict[str, str]]:
    people = checkout.people or 1
    if people == 1:
        return []
    yours, each = splitting.equally(checkout.amount, people)
    mates = money.display(each * (people - 1), checkout.currency)
    label = "Your mate’s share" if people == 2 else f"Your {people - 1} mates’ shares"
    return [
        {"label": "Held on your card now", "amount": amount},
        {"label": label, "amount": mates},
        {"label": "Your own part", "amount": money.display(yours, checkout.currency)},
    ]


def _decline_notice(checkout: Checkout) -> dict[str, str] | None:
    last = Payment.objects.filter(subject=checkout.pk).order_by("-created_at").first()
    if last is None or last.status != Payment.Status.DECLINED:
        return None
    title = DECLINES.get(last.decline_reason, DECLINED)
    return {"title": title, "text": "No money was taken. Try another card."}


@never_cache
@require_safe
def paid(request: HttpRequest) -> HttpResponse:
    """Come back from the provider with a card token, good once, for this checkout and this person."""
    checkout = _checkout(request)
    customer_uuid = payer.customer_of(request, checkout)
    try:
        bound = signing.loads(request.GET.get("bound", ""), salt="card", max_age=payer.LIFE * 4)
    except signing.BadSignature:
        raise Http404 from None
    if (
        customer_uuid is None
        or bound != [checkout.pk.hex, str(customer_uuid)]
        or customer_uuid != checkout.lead_id
    ):
        return _go(checkout)
    cause = Cause(f"customer:{customer_uuid}", request_id.current())
    try:
        transitions.authorize(
            checkout.pk, card_token=request.GET.get("card_token", "")[:64], lead=checkout.lead, cause=cause
        )
    except MerchantSuspended:
        context = {"heading": "This shop takes no payments now", "paragraphs": ["You paid nothing."]}
        return _render(request, checkout, "message", context)
    except (NotPayable, OperationInProgress):
        pass  # the page tells what is true
    return _go(checkout)


@require_POST
def cancel(request: HttpRequest) -> HttpResponse:
    """Lead back to the shop; the order stays payable until it expires."""
    return HttpResponseRedirect(_checkout(request).cancel_url, status=303)


@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def brand_css(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """A merchant's colour as a style sheet; a new colour gets a new address."""
    merchant = get_object_or_404(Merchant, pk=merchant_uuid)
    values = {"--brand": merchant.brand_colour, **brand.properties(merchant.brand_colour)}
    rules = "".join(f"{name}:{value};" for name, value in values.items())
    return HttpResponse(f":root{{{rules}}}\n", content_type="text/css; charset=utf-8")


def _checkout(request: HttpRequest) -> Checkout:
    """Return the checkout that the address names, late ones lapsed or expired first; 404 for anything else."""
    given = request.GET.getlist("id")
    try:
        checkout_uuid = UUID(given[0]) if len(given) == 1 else None
    except ValueError:
        checkout_uuid = None
    if checkout_uuid is None:
        raise Http404
    rows = Checkout.objects.select_related("merchant", "payment", "lead")
    try:
        return reading.one(rows, checkout_uuid)
    except Checkout.DoesNotExist:
        raise Http404 from None


def _render(
    request: HttpRequest,
    checkout: Checkout,
    name: str,
    context: dict[str, Any],
    *,
    status: int = 200,
    may_cancel: bool = True,
) -> HttpResponse:
    shared = {
        "order": summary.of(checkout),
        "checkout_id": checkout.pk,
        "cancel_url_path": _address("pay_cancel", checkout) if may_cancel else "",
    }
    response = render(request, f"hosted_page/{name}.html", {**shared, **context}, status=status)
    csp.allow_forms_to(response, checkout.cancel_url, checkout.return_url, settings.BASE_URL)
    response["Cache-Control"] = "no-store"
    return response


def _address(name: str, checkout: Checkout) -> str:
    return f"{reverse(name)}?id={checkout.pk}"


def _absolute(name: str, checkout: Checkout) -> str:
    return f"{settings.CHECKOUT_PAGE_URL.removesuffix(reverse('pay'))}{_address(name, checkout)}"


def _go(checkout: Checkout, name: str = "pay") -> HttpResponseRedirect:
    return HttpResponseRedirect(_address(name, checkout), status=303)
