"""Finds where a split order's money is, for a person who has only the group link (rule group.opens)."""

from checkout import pledges, refunds, settling
from checkout.models import Checkout
from checkout.states import SHARE_PAID, ShareStatus, Status
from hosted_page.group import group_members
from hosted_page.group.group_members import GroupBill
from hosted_page.status.cells import Situation
from hosted_page.status.share_status import SITUATIONS
from payments import disputes, operator_stops
from payments.models import Dispute

NOT_IN = (group_members.FREE, group_members.SENT, group_members.TAKEN)


def situation_of(checkout: Checkout, bill: GroupBill) -> Situation:
    """Return where the order's money is, or why no share can be taken. Rule group.opens."""
    if checkout.status == Status.CREATED:
        return _unpaid_situation(checkout, bill)
    if checkout.status == Status.AUTHORIZED and _is_everyone_in(bill):
        return Situation.ALL_IN
    if checkout.status != Status.CAPTURED:
        return SITUATIONS[Status(checkout.status)]
    dispute = disputes.blocking_dispute_of_row(checkout)
    if dispute is not None:
        is_lost = dispute.status == Dispute.Status.LOST
        return Situation.BANK_RETURNED if is_lost else Situation.DISPUTED
    is_open = bill.of(group_members.FREE) or bill.of(group_members.SENT)
    if (is_open or bill.of(group_members.TAKEN)) and operator_stops.is_stopped(checkout.merchant_id):
        return Situation.SUSPENDED
    if is_open:
        return Situation.REFUND_FAILED if refunds.has_failed(checkout) else Situation.PAID
    if bill.of(group_members.TAKEN):
        return Situation.ALL_TAKEN
    if bill.of(group_members.PAID):
        has_unpaid = checkout.payment_requests.exclude(status__in=SHARE_PAID).exists()
        return Situation.NO_SHARE_LEFT if has_unpaid else Situation.ALL_PAID
    if settling.is_refunded_by_others(checkout):
        return Situation.REFUNDED_OUTSIDE
    has_expired = checkout.payment_requests.filter(status=ShareStatus.EXPIRED).exists()
    return Situation.LINKS_EXPIRED if has_expired else Situation.NOT_ASKED


def _unpaid_situation(checkout: Checkout, bill: GroupBill) -> Situation:
    """Return the situation of an unpaid order. It says whether a share can be pledged now, or why not."""
    states = {person.state for person in bill.people}
    if states.isdisjoint({*NOT_IN, group_members.PLEDGED}):
        return Situation.UNPAID
    if not pledges.is_waiting(checkout):
        return Situation.STOPPED
    if not states.isdisjoint({group_members.FREE, group_members.SENT}):
        return Situation.COLLECTING
    return Situation.ALL_IN if _is_everyone_in(bill) else Situation.ALL_TAKEN


def _is_everyone_in(bill: GroupBill) -> bool:
    states = {person.state for person in bill.people}
    return group_members.PLEDGED in states and states.isdisjoint(NOT_IN)
