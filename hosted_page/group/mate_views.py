"""Views of a mate's pay link: the page, the QR code, the opt-in, the receipt, and the form to decline."""

import contextlib

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from checkout import mate_shares
from checkout.group import share_changes, share_claims
from checkout.mate_shares import ShareNotOpen
from checkout.models import GroupLink, PaymentRequest
from checkout.states import OperationInProgress
from config.lib.web import address, qr_codes
from hosted_page import payer, views
from hosted_page.group import group_page, mate_page
from hosted_page.opt_in import box
from hosted_page.payment_target import PaymentTarget, for_form, for_page, for_target
from hosted_page.status import receipt_sms
from hosted_page.views import FormErrors


@for_page
def show_share(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the next step of the payment, or the share's status."""
    return mate_page.show_page(request, target)


@require_safe
@cache_control(private=True, max_age=86_400, immutable=True)
@for_target
def show_qr_code(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Return the pay link as a QR code, for the lead to show."""
    return HttpResponse(qr_codes.svg(target.absolute()), content_type="image/svg+xml")


@for_form
def save_opt_in(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Save a mate's choice in the merchant's marketing box. The mate need not be signed in."""
    error = box.save_tick(request, target)
    return (
        mate_page.show_page(request, target, FormErrors(tick=error)) if error else target.go_with(box.SAVED)
    )


@for_form
def text_receipt(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Text the receipt's link to the mate who paid the share."""
    if not target.is_paid_by(payer.customer_of(request, target.subject)):
        return views.show_signed_out(request, target)
    refusal = receipt_sms.request_receipt(target, address.caller_address(request))
    return (
        mate_page.show_page(request, target, FormErrors(receipt=refusal))
        if refusal
        else target.go_to("receipt")
    )


@for_form
def decline(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Decline a share that has a mate's name or number. Release any other share, so that other mates can take it.

    Anyone who has the pay link may decline. At the group link, only two people may: the person who took the
    share, and the person who is signed in with the number that the share was sent to. Rule share.declines.
    """
    share, claim = target.share, payer.claim_of(request)
    if share is None or (target.is_sent and target.payer_of(request) is None):
        return target.go()
    if not share.is_addressed:
        return _leave_share(target, share, claim)
    with contextlib.suppress(ShareNotOpen):  # if it is not open, the page shows its current state
        mate_shares.decline(target.subject, claim)
    return target.go()


def _leave_share(target: PaymentTarget, share: PaymentRequest, claim: str) -> HttpResponse:
    """Release a share that has neither a name nor a number, and show the group page."""
    share_claims.release_claim(share.pk, claim=claim)
    link: GroupLink | None = getattr(target.checkout, "group_link", None)
    token = target.group or (link.token if link else "")
    return group_page.redirect_to_group(token, left=share.position) if token else target.go()


@for_form
def release(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Release a claimed share, and show the group page."""
    share_claims.release_claim(target.subject, claim=payer.claim_of(request))
    return group_page.redirect_to_group(target.group)


@for_form
def reconsider(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Open a declined share again. Anyone who has its pay link may do this.

    At the group link, only the browser that declined the share may do this, and the share is then reserved for it.
    """
    claim = payer.claim_of(request) if target.group else ""
    is_signed_in = payer.customer_of(request, target.subject) is not None
    # If the share cannot be reopened, the page shows its current state.
    with contextlib.suppress(ShareNotOpen, OperationInProgress):
        share_changes.reconsider(target.subject, claim=claim, is_signed_in=is_signed_in)
    return target.go()
