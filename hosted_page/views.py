"""The payer's pages. One address shows what is true now; each POST answers 303 (rule pay.honest_page)."""

import contextlib
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_GET, require_POST, require_safe

from checkout import reading, sharing, splitting
from checkout.models import Checkout, PaymentRequest
from checkout.sharing import ShareNotOpen
from checkout.states import Status
from checkout.transitions import NotPayable, OperationInProgress
from config.lib import address
from hosted_page import box, brand, invitations, links, pages, payer, sign_in, steps, texts, truth
from hosted_page.forms import SplitForm
from hosted_page.visit import Visit
from payments import money
from payments.models import Merchant
from payments.switches import AllStopped, MerchantSuspended


@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the step that is next, or what became of the money."""
    return _page(request, pages.visit_of(request))


def _page(
    request: HttpRequest,
    visit: Visit,
    wrong: dict[str, str] | None = None,
    not_texted: links.Wrong | None = None,
) -> HttpResponse:
    checkout = visit.checkout
    customer_uuid = payer.customer_of(request, checkout.pk)
    is_lead = customer_uuid is not None and customer_uuid == checkout.lead_id
    found = truth.tell(checkout, now=reading.read_at(checkout), is_lead=is_lead)
    if found is not None and steps.SIGN_IN in request.GET and visit.may_sign_in and not is_lead:
        return steps.show(request, visit)
    if found is not None:
        return _status(request, visit, found, is_lead=is_lead, wrong=wrong, not_texted=not_texted)
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(
            headers={"HX-Refresh": "true"}
        )  # the status page asks, and there is none any more
    if customer_uuid is None:
        return steps.show(request, visit)
    if not is_lead:
        return _elsewhere(request, visit)
    # a step of its own in the browser's history: back from the card leads to it
    return visit.go("split" if checkout.people is None else "card")


def _status(
    request: HttpRequest,
    visit: Visit,
    found: truth.Truth,
    *,
    is_lead: bool,
    wrong: dict[str, str] | None = None,
    not_texted: links.Wrong | None = None,
) -> HttpResponse:
    checkout = visit.checkout
    fragment = request.headers.get("HX-Request") == "true"
    context = {
        **vars(found),
        "amount": money.display(checkout.amount, checkout.currency),
        "poll_url": visit.address(),
        "change_card_action": visit.address("another_card") if found.may_change_card else "",
        "return_url_path": ""
        if found.live and found.state not in ("refunding", "releasing")
        else _way_out(checkout),
        "links": links.of(checkout, not_texted) if is_lead and found.state in ("held", "confirmed") else None,
        "box": (box.on(request, visit) or {}) | (wrong or {})
        if is_lead and found.state == "confirmed"
        else None,
        "sign_in_url": f"{visit.address()}&{steps.SIGN_IN}=1"
        if visit.is_of_lead_alone and not is_lead
        else "",
        "cancel_share_action": visit.address("cancel_share"),
        "text_share_action": visit.address("text_share"),
    }
    response = pages.show(
        request,
        visit,
        "_status" if fragment else "status",
        context,
        status=422 if wrong or not_texted else 200,
        may_cancel=False,
    )
    if is_lead and checkout.lead_id is not None:
        payer.remember(response, checkout.pk, checkout.lead_id)
    return response


def _way_out(checkout: Checkout) -> str:
    paid = checkout.captured_at is not None or checkout.status == Status.AUTHORIZED
    return checkout.return_url if paid else checkout.cancel_url


@require_POST
def phone(request: HttpRequest) -> HttpResponse:
    """Send a code to the number that was typed."""
    return steps.take_phone(request, pages.visit_of(request))


@require_POST
def resend(request: HttpRequest) -> HttpResponse:
    """Send a new code to the same number."""
    return steps.resend(request, pages.visit_of(request))


@require_POST
def code(request: HttpRequest) -> HttpResponse:
    """Sign in who enters the right code, and make them the lead."""
    visit = pages.visit_of(request)
    customer = steps.take_code(request, visit)
    if isinstance(customer, HttpResponse):
        return customer
    is_new = customer.pk != visit.checkout.lead_id
    response = visit.go("split" if visit.is_payable and (is_new or visit.checkout.people is None) else "")
    with contextlib.suppress(NotPayable, OperationInProgress):  # the page tells what is true
        if is_new:
            sharing.join(visit.checkout.pk, customer)
        payer.remember(response, visit.subject, customer.pk)
    return response


def _elsewhere(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Somebody else has signed in since: one lead at a time."""
    context = {
        "heading": _("Somebody else is paying now"),
        "paragraphs": [_("They signed in on this order after you. You have paid nothing.")],
        "link": {"href": visit.address("again"), "label": _("Sign in again")},
    }
    return pages.show(request, visit, "message", context)


@require_GET
def again(request: HttpRequest) -> HttpResponse:
    """Start over at the phone step, as nobody."""
    visit = pages.visit_of(request)
    response = visit.go()
    payer.forget(response, visit.subject)
    return response


@never_cache
def split(request: HttpRequest) -> HttpResponse:
    """Ask who shares the cost; the answer leads to the card."""
    visit = pages.visit_of(request)
    if not visit.payer_of(request):
        return visit.go()
    if request.method != "POST":
        return _split(request, visit)
    form = SplitForm(request.POST, visit.checkout)
    if "add" in request.POST or not form.is_valid():
        return _split(request, visit, form)
    try:
        form.write()
    except (NotPayable, OperationInProgress):
        return visit.go()
    return visit.go("card")


def _split(request: HttpRequest, visit: Visit, form: SplitForm | None = None) -> HttpResponse:
    checkout = visit.checkout
    form = form or SplitForm.of(checkout)
    context = {
        "action": visit.address("split"),
        "form": form,
        "equal": _equal_share(checkout, form.people),
        "parts": range(1, max(2, sharing.most_people(checkout)) + 1),
        "amount": money.display(checkout.amount, checkout.currency),
        "minor": {
            "total": checkout.amount,
            "digits": money.minor_digits(checkout.currency),
            "least": sharing.least(checkout),
            "currency": checkout.currency,
        },
    }
    return pages.show(request, visit, "split", context, status=422 if form.errors else 200)


def _equal_share(checkout: Checkout, people: int) -> dict[str, str]:
    """What each bears of an order that so many share equally; the script works it out anew for another number."""
    yours, each = splitting.equally(checkout.amount, min(people, sharing.most_people(checkout)))
    more = money.display(yours - each, checkout.currency)
    return {
        "who": _("Your mate") if people == 2 else _("Each mate"),
        "mates": _("One mate")
        if people == 2
        else _("{count} mates, each this much").format(count=people - 1),
        "times": "2" if people == 2 else f"×{people - 1}",
        "note": _("{more} more, so that it adds up").format(more=more) if yours != each else "",
        "yours": money.display(yours, checkout.currency),
        "each": money.display(each, checkout.currency),
    }


def _signed_out(request: HttpRequest, visit: Visit) -> HttpResponse:
    """What was sent is not done: whoever it was is not signed in here, or no longer."""
    link = {"href": visit.address(), "label": _("Go to your order")}
    if visit.is_of_lead_alone:
        link = {"href": f"{visit.address()}&{steps.SIGN_IN}=1", "label": _("Sign in again")}
    words = [_("Nothing was saved. Your order is as it was.")]
    context = {"heading": _("You are signed out"), "paragraphs": words, "link": link}
    return pages.show(request, visit, "message", context, status=403, may_cancel=False)


@require_POST
def opt_in(request: HttpRequest) -> HttpResponse:
    """Take the lead's tick of the merchant's box."""
    visit = pages.visit_of(request)
    if visit.checkout.captured_at is None:
        return visit.go()
    if not _is_lead(request, visit):
        return _signed_out(request, visit)
    wrong = box.take(request, visit)
    return _page(request, visit, wrong) if wrong else visit.go_with(box.SAVED)


@require_POST
def cancel_share(request: HttpRequest) -> HttpResponse:
    """The lead keeps a share that nobody has paid yet."""
    visit = pages.visit_of(request)
    if not _is_lead(request, visit):
        return _signed_out(request, visit)
    share = _named_share(request, visit)
    if share is not None:
        with contextlib.suppress(ShareNotOpen):  # the page tells what is true
            sharing.cancel(share.pk)
    return visit.go()


@require_POST
def text_share(request: HttpRequest) -> HttpResponse:
    """The lead has a share's link texted to a mate, or has them reminded."""
    visit = pages.visit_of(request)
    if not _is_lead(request, visit):
        return _signed_out(request, visit)
    share = _named_share(request, visit)
    if share is None:
        return visit.go()
    typed = request.POST.get("phone", "")[:40]
    try:
        number = sign_in.parse_phone(typed, visit.checkout.merchant) if typed or not share.phone else ""
        invitations.text(share.pk, phone=number, address=address.of(request))
    except sign_in.InvalidPhone:
        error = steps.wrong_number(visit.checkout.merchant)
    except texts.TooManyTexts as refused:
        error = str(refused)
    except (MerchantSuspended, AllStopped):
        error = _("This shop takes no payments now. Text the link later, or send it yourself.")
    except invitations.NotNow:
        return visit.go()  # the page tells what is true
    else:
        return visit.go()
    return _page(request, visit, not_texted=links.Wrong(str(share.pk), typed, error))


def _is_lead(request: HttpRequest, visit: Visit) -> bool:
    lead = visit.checkout.lead_id
    return lead is not None and payer.customer_of(request, visit.subject) == lead


def _named_share(request: HttpRequest, visit: Visit) -> PaymentRequest | None:
    """Return the share that a form of the lead's page names."""
    shares = {str(share.pk): share for share in visit.checkout.payment_requests.all()}
    return shares.get(request.POST.get("share", ""))


@require_POST
def cancel(request: HttpRequest) -> HttpResponse:
    """Lead back to the shop; the order stays payable until it expires."""
    return HttpResponseRedirect(pages.visit_of(request).checkout.cancel_url, status=303)


@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def brand_css(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """A merchant's colour as a style sheet; a new colour gets a new address."""
    merchant = get_object_or_404(Merchant, pk=merchant_uuid)
    values = {"--brand": merchant.brand_colour, **brand.properties(merchant.brand_colour)}
    rules = "".join(f"{name}:{value};" for name, value in values.items())
    return HttpResponse(f":root{{{rules}}}\n", content_type="text/css; charset=utf-8")
