"""The page of a mate's share: the next step of the payment, or the share's status."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django_htmx.http import HttpResponseClientRefresh

from checkout import current_checkouts, mate_shares
from checkout.group import share_changes
from checkout.models import PaymentRequest
from checkout.states import SHARE_OUTSTANDING, SHARE_PAID, ShareStatus, Status
from config.lib import clock
from hosted_page import payer, rendering, summary, views
from hosted_page.group import group_members
from hosted_page.group.group_members import GroupBill, Person
from hosted_page.opt_in import box
from hosted_page.payment_target import SIGN_IN, PaymentTarget, lead_name, wants_part
from hosted_page.status import share_status
from hosted_page.status.cells import Situation, Viewer
from hosted_page.status.order_status import PageStatus, page_of
from hosted_page.steps import codes, sign_in, sign_in_extension
from hosted_page.views import NO_ERRORS, FormErrors
from payments import disputes, open_operations


def show_page(request: HttpRequest, target: PaymentTarget, errors: FormErrors = NO_ERRORS) -> HttpResponse:
    """Show the next step or the share's status. If a form was refused, show its errors."""
    now = clock.now()
    target = _expire_if_due(target, now)
    customer_uuid = payer.customer_of(request, target.subject)
    if target.replaced:
        is_part = wants_part(request)
        return HttpResponseClientRefresh() if is_part else _show_replaced(request, target, customer_uuid)
    status = _claimed_by_other_status(request, target, now)
    status = status or share_status.share_status_of(target, customer_uuid, now)
    if status is not None:
        if not target.is_known_to(customer_uuid) and sign_in.should_show_sign_in(request, target):
            return sign_in.show_sign_in(request, target)
        return _render(request, target, status, errors)
    return HttpResponseClientRefresh() if wants_part(request) else _next_step(request, target, errors)


def _next_step(request: HttpRequest, target: PaymentTarget, errors: FormErrors) -> HttpResponse:
    """Show the next step of the payment, or the reason why this person cannot pay the share."""
    customer_uuid = payer.customer_of(request, target.subject)
    if customer_uuid is None:
        return sign_in.show_sign_in(request, target, errors.tick)
    if target.payer_of(request) is not None:
        return target.go("card")
    if target.is_sent and customer_uuid != target.checkout.lead_id:
        words = _("This share was sent to another number. Use that number, or ask {name}.")
        return sign_in.show_phone(request, target, error=words.format(name=lead_name(target.checkout)))
    words = _("You signed in with the number that placed this order. Send this link to your mate instead.")
    return _show_own_order(request, target, _("This is your own order"), words)


def _expire_if_due(target: PaymentTarget, now: datetime) -> PaymentTarget:
    """End the share if it is past its deadline, and return the current target."""
    share = target.share
    if share is None or not mate_shares.expire_all_late(target.checkout, [share], now):
        return target
    return target.reread()


def _claimed_by_other_status(request: HttpRequest, target: PaymentTarget, now: datetime) -> PageStatus | None:
    """Return the status to show for a share that another person has claimed through the group link.

    Return None if no other person has claimed the share. Rule group.pays.
    """
    share = target.share
    is_open = share is not None and share.status == ShareStatus.OPEN
    if share is None or not is_open or not share.is_reserved_for_another(payer.claim_of(request), now):
        return None
    return page_of(Situation.CLAIMED, Viewer.HOLDER, {})


def _render(
    request: HttpRequest, target: PaymentTarget, status: PageStatus, errors: FormErrors
) -> HttpResponse:
    context: dict[str, Any] = {
        **_mates_context(target, status),
        **views.receipt_context(request, target, status, errors),
        **_summary_during_dispute(target),
        **_reversal_context(target),
        "stay": sign_in_extension.notice_on_status_page(request, target),
        "box": box.box_context(request, target, errors.tick) if status.state == "share_paid" else None,
    }
    if not target.is_known_to(payer.customer_of(request, target.subject)):
        context |= sign_in.sign_in_link(request, target)
    response = rendering.show_status(request, target, status, context, is_refused=errors != NO_ERRORS)
    return sign_in_extension.prolong(request, response, target)


def _mates_context(target: PaymentTarget, status: PageStatus) -> dict[str, Any]:
    """Return the context about the other mates for a mate who has paid or pledged.

    The page of a mate who has paid updates itself until all mates have paid.
    """
    if status.state == "pledged" and status.is_own:
        return {"pledged": _group_of_pledger(target)}
    if status.state != "share_paid" or not status.is_own:
        return {}
    paid = _group_of_payer(target)
    return {"paid": paid, "live": paid["is_live"]}


def _group_of_pledger(target: PaymentTarget) -> dict[str, Any]:
    """Return the context that shows how many mates have pledged, for a mate who has pledged. It names only the lead."""
    shares, now = current_checkouts.shares_of(target.checkout), clock.now()
    outstanding = [share for share in shares if share.status in SHARE_OUTSTANDING]
    count = sum(share.status == ShareStatus.PLEDGED for share in outstanding)
    words = _("{count} of {asked} mates is in") if count == 1 else _("{count} of {asked} mates are in")
    # It is not known how many mates will take the free units.
    if any(share.has_free_units(now) for share in outstanding):
        words = ngettext("{count} mate is in", "{count} mates are in", count)
    live_payment = open_operations.live_payment(target.subject)
    since = (
        summary.short_time(live_payment.payment.created_at, summary.zone_of(target.checkout))
        if live_payment
        else ""
    )
    return {
        "since": format_html(_("since {time}"), time=since) if since else "",
        "heading": words.format(count=count, asked=len(outstanding)) if len(outstanding) > 1 else "",
        "bill": _bill_without_names(target, shares, now),
        "is_settled": False,
    }


def _bill_without_names(target: PaymentTarget, shares: Sequence[PaymentRequest], now: datetime) -> GroupBill:
    bill = group_members.bill_for_claim(target.checkout, shares, "", now)
    return replace(bill, people=[_without_name(person, target) for person in bill.people])


def _group_of_payer(target: PaymentTarget) -> dict[str, Any]:
    """Return the context that shows how many mates have paid, for a mate who has paid. It names only the lead."""
    shares, now = current_checkouts.shares_of(target.checkout), clock.now()
    counted_shares = [share for share in shares if not share.has_free_units(now)]
    count = sum(share.status in SHARE_PAID for share in shares)
    words = ngettext("{count} of {asked} mates has paid", "{count} of {asked} mates have paid", count)
    if len(counted_shares) < len(shares):  # it is not known how many mates take the free units
        words = ngettext("{count} mate has paid", "{count} mates have paid", count)
    all_paid = _("Everyone has paid") if len(shares) > 1 else ""
    heading = all_paid if count == len(shares) else words.format(count=count, asked=len(counted_shares))
    # During a dispute, and after a lost dispute, a paid share might not count as paid any more.
    is_disputed = disputes.blocking_dispute_of_row(target.checkout) is not None
    is_waiting = any(share.status in (ShareStatus.OPEN, ShareStatus.PAYING) for share in shares)
    is_back = target.share is not None and target.share.status == ShareStatus.REIMBURSED
    return {
        "at": summary.day_with_time(target.share.paid_at if target.share else None, target.checkout),
        "heading": "" if is_disputed else heading,
        "bill": _bill_without_names(target, shares, now),
        "is_live": is_waiting or not is_back,
        "is_settled": count == len(shares) and is_back,
    }


def _without_name(person: Person, target: PaymentTarget) -> Person:
    """Return the person for the bar. Only the lead, and the mate who views the page, keep their names."""
    if person.position == 1:
        return replace(person, initial=person.name[:8])
    is_own = target.share is not None and person.position == target.share.position
    return replace(person, initial=_("You") if is_own else "")


def _summary_during_dispute(target: PaymentTarget) -> dict[str, Any]:
    """Return the order's summary with the label "Total" if a dispute is open or lost, otherwise {}.

    The usual label says that the lead has paid the total, which might be untrue because of the dispute.
    """
    if target.checkout.status != Status.CAPTURED or not disputes.blocking_dispute(target.checkout.pk):
        return {}
    return {"order": replace(summary.summary_of(target), total_label=_("Total"))}


def _reversal_context(target: PaymentTarget) -> dict[str, Any]:
    return {
        "place_to": _("{name}’s card").format(name=lead_name(target.checkout)),
        "reconsider": _reconsider_context(target),
        "withdraw_action": target.address("withdraw"),
        "lead": lead_name(target.checkout),
    }


def _reconsider_context(target: PaymentTarget) -> dict[str, Any] | None:
    """Return the context of the form to reopen a declined share, or None if the share cannot be reopened."""
    share, checkout = target.share, target.checkout
    can_reopen = share is not None and share_changes.may_reconsider(share, clock.now())
    if share is None or not can_reopen or not share_changes.can_mates_pay(checkout):
        return None
    return {
        "action": target.address("reconsider"),
        "name": lead_name(checkout),
        "initial": group_members.share_mark(share),
        "tint": group_members.colour_number(share),
        "until": summary.day_with_time(share.expires_at, checkout),
        "others": reverse("group", args=[target.group]) if target.group else "",
    }


def _show_replaced(request: HttpRequest, target: PaymentTarget, customer_uuid: UUID | None) -> HttpResponse:
    """Redirect the owner of a replaced link to the new link. Show to everyone else that it was replaced.

    The lead is led to the order's page, which shows the new link. Rule share.replaced.
    """
    if customer_uuid is not None and target.is_owner(customer_uuid):
        return PaymentTarget(target.checkout, target.share).go()
    if _is_lead(request, target, customer_uuid):
        return _show_replaced_to_lead(request, target)
    is_known = target.share is not None and bool(target.share.phone or target.share.mate_id)
    may_sign_in = is_known and target.is_payable and customer_uuid is None
    if may_sign_in and (
        SIGN_IN in request.GET or codes.has_waiting_code(target.subject, payer.browser_of(request))
    ):
        return sign_in.show_sign_in(request, target)
    words = _("{name} has made a new link for this share. Ask {name} for it.")
    link = {"href": target.sign_in_path(), "label": _("Sign in to open it")} if may_sign_in else None
    heading, text = _("This link has been replaced"), words.format(name=lead_name(target.checkout))
    return rendering.render_message(request, target, heading, text, link=link)


def _show_replaced_to_lead(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    words = _("You made a new link for this share. It is on the page of your order.")
    return _show_own_order(request, target, _("This link has been replaced"), words)


def _is_lead(request: HttpRequest, target: PaymentTarget, customer_uuid: UUID | None) -> bool:
    """Return whether the reader is signed in as the order's lead, on the page of the share or of the order."""
    lead_uuid = target.checkout.lead_id
    return lead_uuid is not None and lead_uuid in (
        customer_uuid,
        payer.customer_of(request, target.checkout.pk),
    )


def _show_own_order(request: HttpRequest, target: PaymentTarget, heading: str, words: str) -> HttpResponse:
    """Show to the lead who opens a mate's link that it belongs to their own order."""
    link = {"href": PaymentTarget(target.checkout).address(), "label": _("Go to your order")}
    return rendering.render_message(request, target, heading, words, link=link)
