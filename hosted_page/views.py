"""The payer's pages. One address shows what is true now; each POST answers 303 (rule pay.honest_page)."""

import contextlib
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST, require_safe

from checkout import reading, sharing
from checkout.models import Checkout, PaymentRequest
from checkout.sharing import ShareNotOpen
from checkout.states import Status
from config.lib.web import address
from hosted_page import brand, payer, rendering
from hosted_page.group import invitations, links
from hosted_page.opt_in import box
from hosted_page.payment_target import PaymentTarget, for_target
from hosted_page.sms import outbox
from hosted_page.status import of_order
from hosted_page.steps import codes, sign_in
from payments import money
from payments.models import Merchant
from payments.switches import AllStopped, MerchantSuspended


@never_cache
@require_safe
@for_target
def page(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the step that is next, or what became of the money."""
    return _page(request, target)


def _page(
    request: HttpRequest,
    target: PaymentTarget,
    wrong: dict[str, str] | None = None,
    not_texted: links.Wrong | None = None,
) -> HttpResponse:
    checkout = target.checkout
    customer_uuid = payer.customer_of(request, checkout.pk)
    is_lead = customer_uuid is not None and customer_uuid == checkout.lead_id
    found = of_order.tell(checkout, now=reading.read_at(checkout), is_lead=is_lead)
    if found is not None and sign_in.SIGN_IN in request.GET and target.may_sign_in and not is_lead:
        return sign_in.show(request, target)
    if found is not None:
        return _status(request, target, found, is_lead=is_lead, wrong=wrong, not_texted=not_texted)
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(
            headers={"HX-Refresh": "true"}
        )  # the status page asks, and there is none any more
    if customer_uuid is None:
        return sign_in.show(request, target)
    if not is_lead:
        return _elsewhere(request, target)
    # a step of its own in the browser's history: back from the card leads to it
    return target.go("split" if checkout.people is None else "card")


def _status(
    request: HttpRequest,
    target: PaymentTarget,
    found: of_order.PageStatus,
    *,
    is_lead: bool,
    wrong: dict[str, str] | None = None,
    not_texted: links.Wrong | None = None,
) -> HttpResponse:
    checkout = target.checkout
    fragment = request.headers.get("HX-Request") == "true"
    context = {
        **vars(found),
        "amount": money.display(checkout.amount, checkout.currency),
        "poll_url": target.address(),
        "change_card_action": target.address("another_card") if found.may_change_card else "",
        "return_url_path": ""
        if found.live and found.state not in ("refunding", "releasing")
        else _way_out(checkout),
        "links": links.of(checkout, not_texted) if is_lead and found.state in ("held", "confirmed") else None,
        "box": (box.on(request, target) or {}) | (wrong or {})
        if is_lead and found.state == "confirmed"
        else None,
        "sign_in_url": f"{target.address()}&{sign_in.SIGN_IN}=1"
        if target.is_of_lead_alone and not is_lead
        else "",
        "cancel_share_action": target.address("cancel_share"),
        "text_share_action": target.address("text_share"),
    }
    response = rendering.show(
        request,
        target,
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


def _elsewhere(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Somebody else has signed in since: one lead at a time."""
    context = {
        "heading": _("Somebody else is paying now"),
        "paragraphs": [_("They signed in on this order after you. You have paid nothing.")],
        "link": {"href": target.address("again"), "label": _("Sign in again")},
    }
    return rendering.show(request, target, "message", context)


@require_GET
@for_target
def again(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Start over at the phone step, as nobody."""
    response = target.go()
    payer.sign_out(response, target.subject)
    return response


def _signed_out(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """What was sent is not done: whoever it was is not signed in here, or no longer."""
    link = {"href": target.address(), "label": _("Go to your order")}
    if target.is_of_lead_alone:
        link = {"href": f"{target.address()}&{sign_in.SIGN_IN}=1", "label": _("Sign in again")}
    words = [_("Nothing was saved. Your order is as it was.")]
    context = {"heading": _("You are signed out"), "paragraphs": words, "link": link}
    return rendering.show(request, target, "message", context, status=403, may_cancel=False)


@require_POST
@for_target
def opt_in(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Take the lead's tick of the merchant's box."""
    if target.checkout.captured_at is None:
        return target.go()
    if not _is_lead(request, target):
        return _signed_out(request, target)
    wrong = box.take(request, target)
    return _page(request, target, wrong) if wrong else target.go_with(box.SAVED)


@require_POST
@for_target
def cancel_share(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """The lead keeps a share that nobody has paid yet."""
    if not _is_lead(request, target):
        return _signed_out(request, target)
    share = _named_share(request, target)
    if share is not None:
        with contextlib.suppress(ShareNotOpen):  # the page tells what is true
            sharing.cancel(share.pk)
    return target.go()


@require_POST
@for_target
def text_share(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """The lead has a share's link texted to a mate, or has them reminded."""
    if not _is_lead(request, target):
        return _signed_out(request, target)
    share = _named_share(request, target)
    if share is None:
        return target.go()
    wrong = _text(request, target, share)
    return _page(request, target, not_texted=wrong) if wrong else target.go()


def _text(request: HttpRequest, target: PaymentTarget, share: PaymentRequest) -> links.Wrong | None:
    """Have a share's link texted, or say why not."""
    typed = request.POST.get("phone", "")[:40]
    try:
        number = codes.parse_phone(typed, target.checkout.merchant) if typed or not share.phone else ""
        invitations.text(share.pk, phone=number, address=address.of(request))
    except codes.InvalidPhone:
        error = sign_in.wrong_number(target.checkout.merchant)
    except outbox.TooManySmsMessages as refused:
        error = str(refused)
    except (MerchantSuspended, AllStopped):
        error = _("This shop takes no payments now. Text the link later, or send it yourself.")
    except invitations.NotNow:
        return None  # the page tells what is true
    else:
        return None
    return links.Wrong(str(share.pk), typed, error)


def _is_lead(request: HttpRequest, target: PaymentTarget) -> bool:
    lead = target.checkout.lead_id
    return lead is not None and payer.customer_of(request, target.subject) == lead


def _named_share(request: HttpRequest, target: PaymentTarget) -> PaymentRequest | None:
    """Return the share that a form of the lead's page names."""
    shares = {str(share.pk): share for share in target.checkout.payment_requests.all()}
    return shares.get(request.POST.get("share", ""))


@require_POST
@for_target
def cancel(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Lead back to the shop; the order stays payable until it expires."""
    return HttpResponseRedirect(target.checkout.cancel_url, status=303)


@require_safe
def brand_css(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """The tokens in a merchant's colour as a style sheet; a new colour and new tokens get a new address."""
    merchant = get_object_or_404(Merchant, pk=merchant_uuid)
    response = HttpResponse(brand.sheet(merchant.brand_colour), content_type="text/css; charset=utf-8")
    if request.META["QUERY_STRING"] == brand.TOKENS_VERSION:  # a page of another release may ask this one
        patch_cache_control(response, public=True, max_age=31_536_000, immutable=True)
    return response
