"""What a dispute does to an order: links pause and reimbursements wait until it is won or lost."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from checkout import refund_parts, reimbursement, share_outcomes
from checkout.models import NO_CLAIM, Checkout
from checkout.outside import returned_refunds
from checkout.states import ShareStatus, Status
from config.lib import clock, wakeup
from payments import discrepancies, disputes, planning
from payments.models import Dispute, Payment
from payments.outside import inquiries, returns
from payments.outside.inquiries import Claim
from payments.outside.returns import RefundStatus
from payments.provider import DisputeRecord, DisputeStatus, Verdict

ANSWER_INQUIRIES = "checkout.tasks.answer_inquiries"
ASK_AGAIN = timedelta(hours=1)  # while a dispute is open: its decision may come without a notification
ASK_SOON = timedelta(seconds=30)  # if a look-up was not answered


def look_into(claim: Claim) -> None:
    """Ask the provider about a payment's disputes and refunds that came back, and book them (rule dispute.booked)."""
    told = disputes.ask(claim.payment_uuid)
    answers = returns.ask(claim.payment_uuid)
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(claim.checkout_uuid)
        if inquiries.was_overtaken(claim):
            return
        _book(checkout, Payment.objects.get(pk=claim.payment_uuid), told)
        for answer in answers:
            returned_refunds.book(checkout, answer)
        inquiries.close(claim, again_at=_again_at(checkout, answers))


def _again_at(checkout: Checkout, answers: Sequence[RefundStatus]) -> datetime | None:
    if any(answer.outcome.verdict == Verdict.UNKNOWN for answer in answers):
        return clock.now() + ASK_SOON
    return clock.now() + ASK_AGAIN if disputes.is_open(checkout.pk) else None


def _book(checkout: Checkout, payment: Payment, told: Sequence[DisputeRecord]) -> None:
    """Book each new dispute, each new decision, and until when to answer; then what waited may go on."""
    now, has_changed, has_decision = clock.now(), False, False
    for record in told:
        dispute, is_new = disputes.book(payment, record, now=now)
        if is_new:
            _pause(checkout, now)
        if dispute is None:
            continue
        has_changed |= is_new or disputes.keep_term(dispute, record)
        if disputes.contradicts(dispute, record):
            continue
        if dispute.status != record.status:
            _decide(checkout, dispute, record.status, now)
            has_changed = has_decision = True
    if has_decision:  # not before the last record: a new dispute may stand beside a decision
        _go_on(checkout, now)
    if has_changed:
        checkout.touch()


def _go_on(checkout: Checkout, now: datetime) -> None:
    """Let what waited for a decision go on: the order's refund, which lets the links go on if it fails, or these."""
    if checkout.status == Status.REFUNDING:
        refund_parts.go_on(checkout, now)
    else:
        reimbursement.go_on(checkout, now)
    wakeup.after_commit(share_outcomes.FINISH_OPERATIONS)


def _pause(checkout: Checkout, now: datetime) -> None:
    """Withdraw planned reimbursements; report a refund under way: it may give the money twice (rule dispute.waits)."""
    for share in checkout.payment_requests.filter(status=ShareStatus.PAID):
        planning.withdraw(share.pk, now=now)
    if checkout.status == Status.REFUNDING:
        discrepancies.report("disputed_while_refunding", checkout.pk, merchant=checkout.merchant_id)


def _decide(checkout: Checkout, dispute: Dispute, status: DisputeStatus, now: datetime) -> None:
    """Book a decision. A loss ends the links (rule dispute.lost)."""
    disputes.decide(dispute, status, now=now)
    if status == DisputeStatus.LOST:
        checkout.payment_requests.filter(status=ShareStatus.OPEN).update(
            status=ShareStatus.CANCELLED, ended_at=now, **NO_CLAIM
        )
