"""The page of a mate's share: the next step of the payment, or the share's status."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRefresh

from checkout import mate_shares
from checkout.group import share_changes
from checkout.states import ShareStatus, Status
from config.lib import clock
from hosted_page import payer, rendering, summary, views
from hosted_page.group import group_members
from hosted_page.opt_in import box
from hosted_page.payment_target import PaymentTarget, lead_name
from hosted_page.status import share_status
from hosted_page.status.order_status import PageStatus
from hosted_page.steps import sign_in, sign_in_extension
from hosted_page.views import NO_ERRORS, FormErrors
from payments import disputes


def show_page(request: HttpRequest, target: PaymentTarget, refused: FormErrors = NO_ERRORS) -> HttpResponse:
    """Show the next step or the share's status, and the error of a `refused` form."""
    now = clock.now()
    target = _expire_if_due(target, now)
    customer_uuid = payer.customer_of(request, target.subject)
    found = _claimed_by_other_status(request, target, now)
    found = found or share_status.share_status_of(target, customer_uuid, now)
    if found is not None:
        if not target.is_paid_by(customer_uuid) and sign_in.should_show_sign_in(request, target):
            return sign_in.show_sign_in(request, target)
        return _render(request, target, found, refused)
    if rendering.wants_part(request):
        return HttpResponseClientRefresh()
    if customer_uuid is None:
        return sign_in.show_sign_in(request, target, refused.tick)
    return _show_own_order(request, target) if target.payer_of(request) is None else target.go("card")


def _expire_if_due(target: PaymentTarget, now: datetime) -> PaymentTarget:
    """End the share if it is past its deadline, and return the current target."""
    share = target.share
    if share is None or not mate_shares.expire_all_late(target.checkout, [share], now):
        return target
    return target.anew()


def _claimed_by_other_status(request: HttpRequest, target: PaymentTarget, now: datetime) -> PageStatus | None:
    """Return the status of a share that another person has claimed through the group link.

    Return None if no other person has claimed the share. Rule group.pays.
    """
    share = target.share
    is_open = share is not None and share.status == ShareStatus.OPEN
    if share is None or not is_open or not share.is_kept_from(payer.claim_of(request), now):
        return None
    words = _(
        "Someone has taken this share through the group link and might be paying it now. You have not"
        " been charged."
    )
    return PageStatus("taken", _("This share is taken"), [words], live=True)


def _render(
    request: HttpRequest, target: PaymentTarget, found: PageStatus, refused: FormErrors
) -> HttpResponse:
    own: dict[str, Any] = {
        **views.receipt_context(request, target, found, refused),
        **_summary_during_dispute(target),
        "place_to": _("{name}’s card").format(name=lead_name(target.checkout)),
        "reconsider": _reconsider_context(target),
        "stay": sign_in_extension.notice_on_status_page(request, target),
        "box": box.box_context(request, target, refused.tick) if found.state == "share_paid" else None,
    }
    if not target.is_paid_by(payer.customer_of(request, target.subject)):
        own |= sign_in.sign_in_link(request, target)
    response = rendering.show_status(request, target, found, own, is_refused=refused != NO_ERRORS)
    return sign_in_extension.prolong(request, response, target)


def _summary_during_dispute(target: PaymentTarget) -> dict[str, Any]:
    """Return the order's summary with the label "Total" if a dispute is open or lost, otherwise {}.

    The usual label says that the lead has paid the total. During a dispute and after a lost one, this might
    be untrue.
    """
    if target.checkout.status != Status.CAPTURED or not disputes.blocking_dispute(target.checkout.pk):
        return {}
    return {"order": replace(summary.summary_of(target), total_label=_("Total"))}


def _reconsider_context(target: PaymentTarget) -> dict[str, Any] | None:
    """Return the context of the form with which a mate reopens a declined share.

    Return None if the share cannot be reopened.
    """
    share, checkout = target.share, target.checkout
    may = share is not None and share_changes.may_reconsider(share, clock.now())
    if share is None or not may or not share_changes.can_mates_pay(checkout):
        return None
    return {
        "action": target.address("reconsider"),
        "name": lead_name(checkout),
        "initial": share.shown_name[:1].upper() or str(share.position),
        "tint": group_members.colour_number(share),
        "until": summary.day_with_time(share.expires_at, checkout),
    }


def _show_own_order(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    words = _("You signed in with the number that placed this order. Send this link to your mate instead.")
    link = {"href": PaymentTarget(target.checkout).address(), "label": _("Go to your order")}
    return rendering.render_message(request, target, _("This is your own order"), words, link=link)
