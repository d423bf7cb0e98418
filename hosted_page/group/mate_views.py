"""Views of a mate's pay link: the next step or the share's status, the QR code, the opt-in, and declining."""

import contextlib
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from checkout import mate_shares
from checkout.group import share_changes, share_claims
from checkout.mate_shares import ShareNotOpen
from checkout.states import ShareStatus, Status
from config.lib import clock
from config.lib.web import address, qr_codes
from hosted_page import payer, rendering, summary, views
from hosted_page.group import group_members, group_page
from hosted_page.opt_in import box
from hosted_page.payment_target import PaymentTarget, for_form, for_page, for_target, lead_name
from hosted_page.status import receipt_sms, share_status
from hosted_page.status.order_status import PageStatus
from hosted_page.steps import sign_in, sign_in_extension
from hosted_page.views import NOTHING, Refused
from payments import disputes


@for_page
def show_share(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the next step of the payment, or the share's status."""
    return _page(request, target)


def _page(request: HttpRequest, target: PaymentTarget, refused: Refused = NOTHING) -> HttpResponse:
    now = clock.now()
    target = _expired_if_due(target, now)
    customer_uuid = payer.customer_of(request, target.subject)
    found = _of_another(request, target, now) or share_status.share_status_of(target, customer_uuid, now)
    if found is not None:
        if not target.is_paid_by(customer_uuid) and sign_in.is_asked(request, target):
            return sign_in.show_sign_in(request, target)
        return _status(request, target, found, refused)
    if rendering.wants_part(request):
        return HttpResponseClientRefresh()
    if customer_uuid is None:
        return sign_in.show_sign_in(request, target, refused.tick)
    return _own_link(request, target) if target.payer_of(request) is None else target.go("card")


def _expired_if_due(target: PaymentTarget, now: datetime) -> PaymentTarget:
    """Expire a share whose time has passed, and return the current target."""
    share = target.share
    if share is None or not mate_shares.end_all_late(target.checkout, [share], now):
        return target
    return target.anew()


def _of_another(request: HttpRequest, target: PaymentTarget, now: datetime) -> PageStatus | None:
    """Return the status for a share's own link while another person has claimed it through the group link.

    Return None if no other person has. Rule group.pays.
    """
    share = target.share
    is_open = share is not None and share.status == ShareStatus.OPEN
    if share is None or not is_open or not share.is_kept_from(payer.claim_of(request), now):
        return None
    words = _(
        "Somebody has taken this share by the group’s link, and may be paying it now. You are not charged."
    )
    return PageStatus("taken", _("This share is taken"), [words], live=True)


def _status(request: HttpRequest, target: PaymentTarget, found: PageStatus, refused: Refused) -> HttpResponse:
    own: dict[str, Any] = {
        **views.of_receipt(request, target, found, refused),
        **_unpaid_again(target),
        "place_to": _("{name}’s card").format(name=lead_name(target.checkout)),
        "reconsider": _reconsider(target),
        "stay": sign_in_extension.beside(request, target),
        "box": box.box_on(request, target, refused.tick) if found.state == "share_paid" else None,
    }
    if not target.is_paid_by(payer.customer_of(request, target.subject)):
        own |= sign_in.way_back(request, target)
    response = rendering.show_status(request, target, found, own, is_refused=refused != NOTHING)
    sign_in_extension.prolong(request, response, target)
    return response


def _unpaid_again(target: PaymentTarget) -> dict[str, Any]:
    """Return the order's summary with the label "Total" if a dispute is open or lost, otherwise {}.

    The usual label says that the lead has paid the total, which might not be true during a dispute.
    """
    if target.checkout.status != Status.CAPTURED or not disputes.standing(target.checkout.pk):
        return {}
    return {"order": replace(summary.summary_of(target), total_label=_("Total"))}


def _reconsider(target: PaymentTarget) -> dict[str, Any] | None:
    """Return who still asks for a declined share, and until when. Return None if no one may ask for it."""
    share, checkout = target.share, target.checkout
    may = share is not None and share_changes.may_reconsider(share, clock.now())
    if share is None or not may or not share_changes.may_be_asked(checkout):
        return None
    return {
        "action": target.address("reconsider"),
        "name": lead_name(checkout),
        "initial": share.shown_name[:1].upper() or str(share.position),
        "tint": group_members.tint(share),
        "until": summary.day(share.expires_at, checkout),
    }


def _own_link(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    words = _("You signed in with the number that placed it. Send this link to your mate instead.")
    link = {"href": PaymentTarget(target.checkout).address(), "label": _("Go to your order")}
    return rendering.say(request, target, _("This is your own order"), words, link=link)


@require_safe
@cache_control(private=True, max_age=86_400, immutable=True)
@for_target
def qr(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Return the pay link as a QR code, for the lead to show."""
    return HttpResponse(qr_codes.svg(target.absolute()), content_type="image/svg+xml")


@for_form
def opt_in(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Record a mate's tick of the merchant's marketing box. The mate need not be signed in."""
    wrong = box.save_tick(request, target)
    return _page(request, target, Refused(tick=wrong)) if wrong else target.go_with(box.SAVED)


@for_form
def receipt(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Text the receipt's link to the mate who paid the share."""
    if not target.is_paid_by(payer.customer_of(request, target.subject)):
        return views.signed_out(request, target)
    refused = receipt_sms.request_receipt(target, address.caller_address(request))
    return _page(request, target, Refused(receipt=refused)) if refused else target.go_to("receipt")


@for_form
def decline(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Decline the share, or release it if it was claimed through the group link.

    Anyone who has the pay link may decline.
    """
    claim = payer.claim_of(request)
    if target.group and target.share is not None:
        share_claims.release(target.subject, claim=claim)
        return group_page.go(target.group, left=target.share.position)
    with contextlib.suppress(ShareNotOpen):  # the page shows the share's current state
        mate_shares.decline(target.subject, claim)
    return target.go()


@for_form
def release(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Release a claimed share, and show the group page."""
    share_claims.release(target.subject, claim=payer.claim_of(request))
    return group_page.go(target.group)


@for_form
def reconsider(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Open a declined share again. Anyone who has its link may do this."""
    with contextlib.suppress(ShareNotOpen):  # the page shows the share's current state
        share_changes.reconsider(target.subject)
    return target.go()
