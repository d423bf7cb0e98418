"""Money after the capture, driven at random at the sandbox bank.

Mates pay, the merchant refunds, its staff refund in the bank's dashboard, payers dispute, banks decide and send refunds
back, operators act, messages are repeated or lost, calls fail, days pass, and the database is put back.
"""

import sys
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from checkout import authorizations, captures, refunds, sharing, states, tasks
from checkout.models import Checkout, PaymentRequest
from checkout.proof import proving
from checkout.remedies import sending, settling_outside
from checkout.remedies.asking import NotAllowed
from checkout.restore import repairing
from checkout.syncing import notifications
from config.lib import clock
from payments import opening
from payments.inquiring import reconciliation
from payments.models import Booking, Discrepancy, Inquiry, Merchant, Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank, client, fault_injection, settling
from payments.providers.sandbox.models import BankNotification, Call, Charge, Fault
from payments.providers.sandbox.models import Dispute as BankDispute
from tests import factories, mates, restoring
from tests.checkout.lifecycle import ageing, ways_out
from tests.factories import CAUSE

T = TypeVar("T")
VISA, FINNS, CLOSED, RETURNS = "4242424242424242", mates.FINNS, mates.ACCOUNT_CLOSED, "4000000000007726"
CARDS = st.sampled_from([VISA, VISA, FINNS, CLOSED, RETURNS])
WHICH = st.integers(0, 9)
FAULTS = st.sampled_from(
    [
        *(
            ("refund", mode)
            for mode in ("down", "error", "done_then_reset", "done_then_error", "replayed_500")
        ),
        *(("capture", mode) for mode in ("down", "done_then_reset", "error", "pending")),
        *(("look_up", mode) for mode in ("down", "not_vouched")),
        *(("movements", mode) for mode in ("down", "stale")),
        ("refund", "refund_card_closed"),
    ]
)
NEVER = (
    "captured_after_the_end",
    "card_got_too_much",
    "missing_there",
    "refund_after_refusal",
    "refund_of_another_amount",
    "succeeded_under_an_old_key",
)
DAY = 86_400
TO_REST = (5, 70, 650, 3700, DAY, DAY + 3700, DAY, DAY, 3700, 3700)
ROUNDS = 12  # of what is due at one moment


class Money(RuleBasedStateMachine):
    """One order that is captured; each rule is something that happens to its money.

    A rule that finds nothing to act on, or is refused, does nothing.
    """

    def __init__(self, merchant: Merchant) -> None:
        super().__init__()
        self.merchant = merchant
        self.savepoint = transaction.savepoint()
        self.refs = 0
        self.backup: restoring.Backup | None = None

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:  # else a step has failed already
                self._come_to_rest()
        finally:
            transaction.savepoint_rollback(self.savepoint)
            connection.run_on_commit = []
            opening._is_open.read_anew()

    @initialize(shares=st.sampled_from([[], [3000], [2000, 3000], [9000]]), card=CARDS)
    def begin(self, shares: list[int], card: str) -> None:
        order = factories.checkout(self.merchant)
        mates.split(order, *shares)
        token = bank.tokenise(subject=order.pk, number=card)
        lead = factories.CustomerFactory.create()
        authorizations.authorize(order.pk, card=CardUse(token), lead=lead, cause=CAUSE)
        captures.capture(self.merchant, order.pk, cause=CAUSE)
        self.order = order.pk

    @rule(which=WHICH, card=CARDS)
    def mate_pays(self, which: int, card: str) -> None:
        opened = PaymentRequest.objects.filter(checkout=self.order, status__in=["open", "paying"])
        share = _pick(list(opened.order_by("pk")), which)
        if share is not None:
            with suppress(sharing.ShareNotOpen, states.StateConflict, states.OperationInProgress):
                mates.pay(share, card)

    @rule()
    def merchant_refunds(self) -> None:
        self.refs += 1
        with suppress(states.StateConflict, states.OperationInProgress):
            refunds.accept(self.merchant, self.order, ref=f"r-{self.refs}", cause=CAUSE)

    @rule(which=WHICH, part=st.sampled_from([1, 2, 3]), is_pending=st.booleans())
    def staff_refund(self, which: int, part: int, is_pending: bool) -> None:
        charge = _pick(_captured(), which)
        if charge is not None:
            amount = max(1, (charge.amount - charge.refunded_amount) // part)
            facts = {"kind": "refund", "payment": charge.payment, "amount": amount}
            client.ask("act_in_dashboard", is_pending=is_pending, **facts)

    @rule(which=WHICH, fails=st.booleans())
    def refund_ends(self, which: int, fails: bool) -> None:
        """A pending refund settles or fails; a settled one comes back."""
        lines = Call.objects.filter(kind="refund", verdict__in=["pending", "succeeded"])
        line = _pick(list(lines.select_related("charge").order_by("created_at", "pk")), which)
        if line is not None:
            settling.end_refund(
                payment=line.charge.payment,
                reference=str(line.key),
                fails_with=settling.CLOSED if fails else "",
            )

    @rule(which=WHICH, part=st.sampled_from([1, 1, 2]), is_inquiry=st.booleans())
    def payer_disputes(self, which: int, part: int, is_inquiry: bool) -> None:
        charge = _pick(_captured(), which)
        if charge is not None:
            facts = {"amount": charge.amount // part, "is_inquiry": is_inquiry}
            client.ask("dispute", payment=charge.payment, **facts)

    @rule(which=WHICH, is_won=st.booleans())
    def bank_decides(self, which: int, is_won: bool) -> None:
        """Decide an open dispute, or by an appeal one that was decided."""
        rows = BankDispute.objects.select_related("charge").order_by("pk")
        found = _pick(list(rows), which)
        if found is not None:
            client.ask("decide", payment=found.charge.payment, is_won=is_won, reference=str(found.pk))

    @rule(which=WHICH)
    def operator_sends_again(self, which: int) -> None:
        row = _pick(ways_out.refused_refunds(self.order), which)
        if row is not None:
            with suppress(NotAllowed):
                sending.send_again(row.pk, cause=CAUSE)

    @rule(which=WHICH)
    def operator_settles_outside(self, which: int) -> None:
        row = _pick(ways_out.refused_refunds(self.order), which)
        if row is not None:
            with suppress(NotAllowed):
                settling_outside.settle_outside(row.pk, note="By bank transfer", cause=CAUSE)

    @rule(which=WHICH)
    def operator_takes_back(self, which: int) -> None:
        row = _pick(list(Booking.objects.filter(kind="settled_outside").order_by("pk")), which)
        if row is not None:
            with suppress(NotAllowed):
                settling_outside.take_back(row.pk, note="It never arrived", cause=CAUSE)

    @rule(times=st.integers(0, 2))
    def bank_tells(self, times: int) -> None:
        """What the bank has to tell is heard as often: not at all, once or twice."""
        told = client.ask("tell", payments=ways_out.payments())
        for notification in [*told] * times:
            notifications.hear_message(notification)
        BankNotification.objects.update(due_at=None)

    @rule()
    def inquiries_are_answered(self) -> None:
        tasks.answer_inquiries()

    @rule()
    def night_comes(self) -> None:
        reconciliation.run()
        tasks.answer_inquiries()

    @rule()
    def pump_runs(self) -> None:
        tasks.finish_operations()

    @rule(fault=FAULTS, times=st.integers(1, 2))
    def bank_goes_wrong(self, fault: tuple[str, str], times: int) -> None:
        fault_injection.set_fault(verb=fault[0], mode=fault[1], times=times)

    @rule(seconds=st.sampled_from([3, 70, 3700, 3700, DAY, DAY * 4]))
    def time_passes(self, seconds: int) -> None:
        ageing.let_pass(seconds, self.backup)

    @rule()
    def backup_is_made(self) -> None:
        if self.backup is None:
            self.backup = restoring.Backup()

    @rule()
    def database_is_put_back(self) -> None:
        """What has happened since the backup is lost here, and not at the bank."""
        if self.backup is not None:
            self.backup.restore()
            self.backup.discard()
            Fault.objects.all().delete()
            repairing.repair(self.backup.made_at)
            self.backup = None

    @rule()
    def links_end(self) -> None:
        tasks.end_links()

    @invariant()
    def the_proof_is_clean(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        assert proving.breaches() == []
        assert [row.kind for row in Discrepancy.objects.filter(kind__in=NEVER)] == []

    def _come_to_rest(self) -> None:
        """No more faults, and time: pumps and nights alone bring everything to its end, then banks decide disputes."""
        Fault.objects.all().delete()
        self._let_it_end()
        self._check()
        for dispute in BankDispute.objects.filter(status="open").select_related("charge").order_by("pk"):
            is_won = bool(dispute.pk.int % 2)
            client.ask("decide", payment=dispute.charge.payment, is_won=is_won, reference=str(dispute.pk))
        self._let_it_end()
        self._check()
        checkout = Checkout.objects.select_related("merchant").get(pk=self.order)
        assert ways_out.ways_out(checkout), "a state without a way out"

    def _let_it_end(self) -> None:
        for seconds in TO_REST:
            ageing.let_pass(seconds)
            for line in Call.objects.filter(kind="refund", verdict="pending", settles_at=None):
                settling.end_refund(payment=line.charge.payment, reference=str(line.key))
            reconciliation.run()
            Inquiry.objects.update(due_at=clock.now())
            tasks.answer_inquiries()
            for _ in range(ROUNDS):
                tasks.finish_operations()
                ageing.let_pass(3)
                soon = clock.now() + timedelta(minutes=1)
                if not Operation.objects.filter(ended_at=None, next_attempt_at__lt=soon).exists():
                    break
            tasks.answer_inquiries()
            self.the_proof_is_clean()
            if not Operation.objects.filter(ended_at=None).exists() and seconds > DAY:
                break

    def _check(self) -> None:
        checkout = Checkout.objects.select_related("merchant").get(pk=self.order)
        under_way = Operation.objects.filter(ended_at=None)
        assert list(under_way) == []
        assert ways_out.card_differences() == []
        assert ways_out.unexplained(checkout) == []


def _captured() -> list[Charge]:
    return list(Charge.objects.filter(state="captured").order_by("pk"))


def _pick(found: list[T], which: int) -> T | None:
    return found[which % len(found)] if found else None
