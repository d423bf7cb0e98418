"""The pages of an order.

The address of an order always shows its current state. An accepted POST redirects with status 303 (rule
pay.honest_page).
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.cache import patch_cache_control
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from checkout import current_checkouts
from checkout.models import Checkout
from checkout.states import Status
from config.lib.web import address
from hosted_page import brand, payer, rendering
from hosted_page.group import bill, bill_lines, collecting, group_link
from hosted_page.opt_in import box
from hosted_page.payment_target import SIGNED_OUT, PaymentTarget, for_form, for_page, wants_part
from hosted_page.status import order_status, receipt_sms
from hosted_page.steps import code_page, sign_in, sign_in_extension, typed_split
from payments.models import Merchant


@dataclass(frozen=True)
class FormErrors:
    """The errors of a refused form, shown on the status page.

    - `tick`: the errors of the opt-in box
    - `number`: the reason why a share's link was not texted
    - `act`: the reason why another action on a share was refused
    - `receipt`: the reason why the receipt's link was not texted
    - `added`: the fields that the lead filled in for a late mate, and the error
    """

    tick: dict[str, str] = field(default_factory=dict)
    number: bill_lines.SmsError | None = None
    act: str = ""
    receipt: str = ""
    added: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """HTTP status of a page with these errors, or 200 if there are no errors."""
        return 200 if self == FormErrors() else 422


NO_ERRORS = FormErrors()
NOT_ADDED = {"new_name": "", "new_amount": "", "error": ""}
# The steps whose addresses the bill page needs.
BILL_STEPS = ("bill", "add_mate", "cancel_share", "rename_share", "ask_again", "text_share", "remind")


@for_page
def show_order(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the next step of the payment, or the status of the order."""
    return show_page(request, target)


def show_page(request: HttpRequest, target: PaymentTarget, errors: FormErrors = NO_ERRORS) -> HttpResponse:
    """Show the next step or the current state of the order. If a form was refused, show its errors."""
    is_signed_in = is_lead(request, target)
    status = order_status.order_status_of(
        target.checkout, now=current_checkouts.read_at(target.checkout), is_lead=is_signed_in
    )
    if status is None or collecting.is_update(request):
        return _next_step(request, target, errors) if status is None else HttpResponseClientRefresh()
    if not is_signed_in and sign_in.should_show_sign_in(request, target):
        return sign_in.show_sign_in(request, target)
    response = (
        _show_to_lead(request, target, status, errors)
        if is_signed_in
        else _show_to_others(request, target, status)
    )
    return sign_in_extension.prolong(request, response, target)


def _show_to_lead(
    request: HttpRequest, target: PaymentTarget, status: order_status.PageStatus, errors: FormErrors
) -> HttpResponse:
    """If the order is split and paid, show the bill to the lead, otherwise the status page.

    If the order was captured after it was read and before its shares were read, the page is loaded again.
    """
    if status.state in ("confirmed", "refund_failed") and target.checkout.has_mates:
        return _show_bill(request, target, status, errors)
    held_bill = bill.bill_of(target.checkout) if status.state == "held" else None
    if held_bill is not None and _was_captured(target.checkout, held_bill):
        return HttpResponseClientRefresh() if wants_part(request) else target.go()
    context = _lead_context(request, target, status, errors) | {
        "bill": held_bill,
        **_frame_context(request, target, status),
    }
    return rendering.show_status(request, target, status, context, is_refused=errors != NO_ERRORS)


def _was_captured(checkout: Checkout, held_bill: bill.Bill) -> bool:
    """Return whether the order was captured after it was read.

    Only a captured order has links that end after its deadline to pay.
    """
    ends = (share.expires_at for share in held_bill.shares)
    return any(end is not None and end > checkout.payable_until for end in ends)


def _show_to_others(
    request: HttpRequest, target: PaymentTarget, status: order_status.PageStatus
) -> HttpResponse:
    context = sign_in.sign_in_link(request, target) | _frame_context(request, target, status)
    return rendering.show_status(request, target, status, context, is_refused=False)


def _frame_context(
    request: HttpRequest, target: PaymentTarget, status: order_status.PageStatus
) -> dict[str, Any]:
    """Return the link back to the shop and the notice about the end of the sign-in."""
    return {
        "return_url_path": _shop_address(target.checkout, status),
        "cancel_url_path": "",
        "stay": sign_in_extension.notice_on_status_page(request, target),
    }


def _show_bill(
    request: HttpRequest, target: PaymentTarget, status: order_status.PageStatus, errors: FormErrors
) -> HttpResponse:
    """Show the bill. If an open page still shows that the order is held, make it load the bill page."""
    leads_bill = bill.bill_of(target.checkout, error=errors.number)
    if leads_bill is None or wants_part(request):
        return HttpResponseClientRefresh()
    context = {
        **bill_context(target, leads_bill),
        **_frame_context(request, target, status),
        **receipt_context(request, target, status, errors),
        **{"refused": errors.act, "added": errors.added or NOT_ADDED},
        "asks": request.GET.get("asks", ""),
        "box": None if leads_bill.is_given_back else box.box_context(request, target, errors.tick),
    }
    return rendering.render_page(request, target, "bill", context, status=errors.status)


def receipt_context(
    request: HttpRequest, target: PaymentTarget, status: order_status.PageStatus, errors: FormErrors
) -> dict[str, Any]:
    """Return the receipt and the refund.

    If the payment's outcome is final, add the offer to text the receipt's link.
    """
    is_offered = status.receipt is not None and (not status.live or status.state == "share_paid")
    offer = receipt_sms.receipt_offer(request, target, errors.receipt) if is_offered else None
    return {"receipt": status.receipt, "refund": status.refund, "receipt_sms": offer}


def bill_context(target: PaymentTarget, leads_bill: bill.Bill) -> dict[str, Any]:
    """Return the context of the part of the bill page that updates itself."""
    is_link_shared = leads_bill.is_asking and not leads_bill.disputed and not leads_bill.is_stopped
    link = group_link.group_link_of(target.checkout, leads_bill.shares) if is_link_shared else None
    return {
        "bill": leads_bill,
        "one_link": link,
        "return_url_path": target.checkout.return_url if leads_bill.failed_refund else "",
        **{f"{step}_action": target.address(step) for step in BILL_STEPS},
    }


def _next_step(request: HttpRequest, target: PaymentTarget, errors: FormErrors = NO_ERRORS) -> HttpResponse:
    """Show the next step.

    The steps after the sign-in have their own addresses, so that the browser's Back button works.
    """
    customer_uuid = payer.customer_of(request, target.subject)
    shares = current_checkouts.shares_of(target.checkout)
    shows_page = not wants_part(request) or collecting.is_update(request)
    is_lead_known = customer_uuid == target.checkout.lead_id is not None
    if is_lead_known and collecting.is_collecting(shares) and shows_page:
        return collecting.show_collecting(request, target, shares, refused=errors.act)
    if wants_part(request):
        return HttpResponseClientRefresh()
    if customer_uuid is None:
        return sign_in.show_sign_in(request, target)
    if customer_uuid != target.checkout.lead_id:
        return _show_signed_in_elsewhere(request, target)
    return target.go("split" if target.checkout.people is None else "card")


def _lead_context(
    request: HttpRequest, target: PaymentTarget, status: order_status.PageStatus, errors: FormErrors
) -> dict[str, Any]:
    """Return the context that only the lead gets: the receipt and, after the capture, the opt-in box."""
    return {
        "bill_action": "",  # no address, because the bill is updated with the rest of the page
        **receipt_context(request, target, status, errors),
        "box": box.box_context(request, target, errors.tick) if status.state == "confirmed" else None,
    }


def _shop_address(checkout: Checkout, status: order_status.PageStatus) -> str:
    """Return the URL at which the payer returns to the shop, or "" while the payment's outcome is not final.

    Rule pay.return.
    """
    if status.live and status.state not in ("refunding", "releasing", "suspended"):
        return ""
    is_paid = checkout.captured_at is not None or checkout.status == Status.AUTHORIZED
    return checkout.return_url if is_paid else checkout.cancel_url


def _show_signed_in_elsewhere(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show that a different person has signed in since. An order has only one lead at a time."""
    unpaid = order_status.unpaid_sentence(target.checkout)
    reason = _("Someone else signed in to this order after you.")
    words = format_html("{} {}", unpaid, reason)
    context: dict[str, Any] = {
        "further": _sentences_about_payer(has_mates=target.checkout.has_mates),
        "link": {"href": target.address("leave"), "label": _("Sign in and take over")},
        "cancel_url_path": "",
        "leave": None,
        "way_back": target.checkout.cancel_url,
    }
    return rendering.render_message(request, target, _("Someone else has signed in to pay"), words, **context)


def _sentences_about_payer(*, has_mates: bool) -> str:
    """Return what the former lead can do. With `has_mates`, a new sign-in ends the split of the current lead."""
    if has_mates:
        return _(
            "If that is your mate, you don’t need to do anything. To pay yourself, sign in again. Their split"
            " then ends."
        )
    return _("If that is your mate, you don’t need to do anything. To pay yourself, sign in again.")


@for_form
def leave(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Sign the person out. If they pressed "Not you?", the next page asks for another number."""
    is_other = "other" in request.POST and target.is_payable
    response = target.go_with(SIGNED_OUT) if target.is_only_for_payer else target.go()
    if is_other:
        response = HttpResponseRedirect(code_page.change_url(target), status=303)
    payer.sign_out(request, response, target.subject)
    typed_split.delete_values(request, response)
    return response


def show_signed_out(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show that no change was saved, because the payer is not signed in here."""
    link = {"href": target.address(), "label": _("Go to your order")}
    if target.is_only_for_payer:
        link = {"href": target.sign_in_path(), "label": _("Sign in again")}
    heading, words = (
        _("You are signed out"),
        _("This was not saved, and you were not charged. Your order has not changed."),
    )
    return rendering.render_message(
        request, target, heading, words, link=link, status=403, cancel_url_path=""
    )


@for_form
def save_opt_in(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Save the lead's choice in the merchant's marketing box."""
    if target.checkout.captured_at is None:
        return target.go()
    if not is_lead(request, target):
        return show_signed_out(request, target)
    error = box.save_tick(request, target)
    return show_page(request, target, FormErrors(tick=error)) if error else target.go_with(box.SAVED)


@for_form
def text_receipt(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Text the receipt's link to the lead."""
    if not is_lead(request, target):
        return show_signed_out(request, target)
    refusal = receipt_sms.request_receipt(target, address.caller_address(request))
    return show_page(request, target, FormErrors(receipt=refusal)) if refusal else target.go_to("receipt")


def is_lead(request: HttpRequest, target: PaymentTarget) -> bool:
    """Return whether the order's lead is signed in in this browser."""
    lead = target.checkout.lead_id
    return lead is not None and payer.customer_of(request, target.subject) == lead


@for_form
def cancel(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Redirect to the shop. The order stays payable until it expires."""
    return HttpResponseRedirect(target.checkout.cancel_url, status=303)


@require_safe
def serve_brand_css(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """Return the style sheet with a merchant's colour. If the colour or the tokens change, so does the address."""
    return _serve_style_sheet(request, get_object_or_404(Merchant, pk=merchant_uuid).brand_colour)


@require_safe
def serve_colour_css(request: HttpRequest, colour: str) -> HttpResponse:
    """Return the style sheet for a colour that is not saved yet, such as "A61C59"."""
    if not brand.is_colour(f"#{colour}"):
        raise Http404
    return _serve_style_sheet(request, f"#{colour}")


def _serve_style_sheet(request: HttpRequest, colour: str) -> HttpResponse:
    response = HttpResponse(brand.sheet(colour), content_type="text/css; charset=utf-8")
    # A page from another release can request a version that this release does not have. The response must
    # then not be cached.
    if request.META["QUERY_STRING"] == brand.TOKENS_VERSION:
        patch_cache_control(response, public=True, max_age=31_536_000, immutable=True)
    return response
