"""The pages of an order. One address shows what is true now; each POST answers 303 (rule pay.honest_page)."""

import contextlib
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_safe
from django_htmx.http import HttpResponseClientRefresh

from checkout import reading, sharing
from checkout.models import Checkout, PaymentRequest
from checkout.sharing import ShareNotOpen
from checkout.states import Status
from config.lib.web import address
from hosted_page import brand, payer, rendering
from hosted_page.group import invitations, links, one_link
from hosted_page.opt_in import box
from hosted_page.payment_target import PaymentTarget, for_form, for_page, for_target
from hosted_page.sms import limits
from hosted_page.status import of_order
from hosted_page.steps import sign_in
from hosted_page.steps.phone import InvalidPhone, parse_phone
from payments.models import Merchant
from payments.switches import AllStopped, MerchantSuspended


@dataclass(frozen=True)
class Refused:
    """What was sent from the status page and refused: a tick of the opt-in box, a number for a share's link."""

    tick: dict[str, str] = field(default_factory=dict)
    number: links.Wrong | None = None


NOTHING = Refused()


@for_page
def page(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the next step, or what became of the money."""
    return _page(request, target)


def _page(request: HttpRequest, target: PaymentTarget, refused: Refused = NOTHING) -> HttpResponse:
    is_lead = _is_lead(request, target)
    found = of_order.tell(target.checkout, now=reading.read_at(target.checkout), is_lead=is_lead)
    if found is None:
        return HttpResponseClientRefresh() if rendering.wants_part(request) else _step(request, target)
    if sign_in.SIGN_IN in request.GET and target.may_sign_in and not is_lead:
        return sign_in.show(request, target)
    own = _of_lead(request, target, found, refused) if is_lead else _of_others(target)
    own |= {"return_url_path": _way_out(target.checkout, found), "cancel_url_path": ""}
    response = rendering.show_status(request, target, found, own, is_refused=refused != NOTHING)
    if is_lead:
        payer.prolong(request, response, target.subject)
    return response


def _step(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the next step. Those after the sign-in have addresses of their own, to which the browser can go back."""
    customer_uuid = payer.customer_of(request, target.subject)
    if customer_uuid is None:
        return sign_in.show(request, target)
    if customer_uuid != target.checkout.lead_id:
        return _elsewhere(request, target)
    return target.go("split" if target.checkout.people is None else "card")


def _of_lead(
    request: HttpRequest, target: PaymentTarget, found: of_order.PageStatus, refused: Refused
) -> dict[str, Any]:
    """Return what the lead is shown too: the mates' links, and the opt-in box once the order is paid."""
    is_confirmed = found.state == "confirmed"
    has_links = is_confirmed or found.state == "held"
    return {
        "links": links.of(target.checkout, refused.number) if has_links else None,
        "one_link": one_link.of(target.checkout) if is_confirmed else None,
        "box": box.on(request, target, refused.tick) if is_confirmed else None,
        "cancel_share_action": target.address("cancel_share"),
        "send_link_action": target.address("send_link"),
    }


def _of_others(target: PaymentTarget) -> dict[str, Any]:
    """Return what others are shown too: a way for the lead to sign in again."""
    return {"sign_in_url": f"{target.address()}&{sign_in.SIGN_IN}=1" if target.is_of_lead_alone else ""}


def _way_out(checkout: Checkout, found: of_order.PageStatus) -> str:
    """Return the order's own address back to the shop, "" while the money is on its way. Rule pay.return."""
    if found.live and found.state not in ("refunding", "releasing"):
        return ""
    paid = checkout.captured_at is not None or checkout.status == Status.AUTHORIZED
    return checkout.return_url if paid else checkout.cancel_url


def _elsewhere(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Say that somebody else has signed in since: there is one lead at a time."""
    words = _("They signed in on this order after you. You have paid nothing.")
    link = {"href": target.address("again"), "label": _("Sign in again")}
    return rendering.say(request, target, _("Somebody else is paying now"), words, link=link)


@require_GET
@for_target
def again(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Sign out, and start over at the phone step."""
    response = target.go()
    payer.sign_out(response, target.subject)
    return response


def _signed_out(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Say that nothing was saved, because the lead is not signed in here, or no longer."""
    link = {"href": target.address(), "label": _("Go to your order")}
    if target.is_of_lead_alone:
        link = {"href": f"{target.address()}&{sign_in.SIGN_IN}=1", "label": _("Sign in again")}
    heading, words = _("You are signed out"), _("Nothing was saved. Your order is as it was.")
    return rendering.say(request, target, heading, words, link=link, status=403, cancel_url_path="")


@for_form
def opt_in(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Take the lead's tick of the merchant's box."""
    if target.checkout.captured_at is None:
        return target.go()
    if not _is_lead(request, target):
        return _signed_out(request, target)
    wrong = box.take(request, target)
    return _page(request, target, Refused(tick=wrong)) if wrong else target.go_with(box.SAVED)


@for_form
def cancel_share(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Cancel a share that nobody has paid yet, so that it stays with the lead."""
    if not _is_lead(request, target):
        return _signed_out(request, target)
    share = _named_share(request, target)
    if share is not None:
        with contextlib.suppress(ShareNotOpen):  # the page tells what is true
            sharing.cancel(share.pk)
    return target.go()


@for_form
def send_link(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Send a share's link to a mate, or a reminder, for the lead."""
    if not _is_lead(request, target):
        return _signed_out(request, target)
    share = _named_share(request, target)
    if share is None:
        return target.go()
    wrong = _send_link(request, target, share)
    return _page(request, target, Refused(number=wrong)) if wrong else target.go()


def _send_link(request: HttpRequest, target: PaymentTarget, share: PaymentRequest) -> links.Wrong | None:
    """Send a share's link or a reminder; return why it was refused, None if it was not."""
    typed = request.POST.get("phone", "")[:40]
    try:
        number = parse_phone(typed, target.checkout.merchant) if typed or not share.phone else ""
        invitations.send(share.pk, phone=number, address=address.of(request))
    except InvalidPhone:
        error = sign_in.wrong_number(target.checkout.merchant)
    except limits.TooManySmsMessages as refused:
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
    """Return the share that a form of the lead's page names, None if there is none."""
    shares = {str(share.pk): share for share in target.checkout.payment_requests.all()}
    return shares.get(request.POST.get("share", ""))


@for_form
def cancel(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Redirect to the shop; the order stays payable until it expires."""
    return HttpResponseRedirect(target.checkout.cancel_url, status=303)


@require_safe
def brand_css(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """Return the tokens in a merchant's colour as a style sheet; a new colour or new tokens get a new address."""
    merchant = get_object_or_404(Merchant, pk=merchant_uuid)
    response = HttpResponse(brand.sheet(merchant.brand_colour), content_type="text/css; charset=utf-8")
    if request.META["QUERY_STRING"] == brand.TOKENS_VERSION:  # a page of another release may ask for its own
        patch_cache_control(response, public=True, max_age=31_536_000, immutable=True)
    return response
