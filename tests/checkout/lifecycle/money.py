"""State machine that runs random events on the money of a captured order, at a real or simulated provider.

Mates pay, the merchant refunds, and its staff refund in the bank's dashboard. Payers open disputes, banks decide
disputes and return refunds, and operators use the remedies. Notifications are repeated or lost, calls fail, days
pass, and the database is restored.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from checkout import authorizations, captures, mate_shares, refunds, states, tasks
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from checkout.remedies import sending, settling_outside
from checkout.remedies.status_check import NotAllowed
from checkout.restore import repair
from checkout.syncing import notifications
from config.lib import clock
from payments import restore_guard
from payments.inquiring import reconciliation
from payments.models import Booking, Discrepancy, Inquiry, Merchant, Operation
from payments.provider import CardUse
from tests import factories, restoring
from tests.checkout.lifecycle import ageing, blind_spots, unit_rules, ways_out
from tests.checkout.lifecycle.banks import Bank, pick
from tests.checkout.lifecycle.unit_rules import BY_ITEM, ByItem, UnitRules
from tests.factories import CAUSE

CARDS = st.sampled_from(["good", "good", "other", "closed", "returns"])
WHICH = st.integers(0, 9)
NEVER = (
    "captured_after_the_end",
    "missing_there",
    "refund_after_refusal",
    "refund_of_another_amount",
    "succeeded_under_an_old_key",
)
DAY = 86_400
TO_REST = (5, 70, 650, 3700, DAY, DAY + 3700, DAY, DAY, 3700, 3700)
ROUNDS = 12  # within this many runs, the pump must finish all work that is due


class Money(UnitRules):
    """A state machine with one captured order. Each rule is an event that affects the order's money.

    A rule has no effect if it finds no object to act on, or if the action is refused.
    """

    def __init__(self, merchant: Merchant, bank: Bank) -> None:
        super().__init__()
        self.merchant, self.bank = merchant, bank
        self.savepoint = transaction.savepoint()
        self.refs = self.proofs = 0
        self.backup: restoring.Backup | None = None

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:  # not if a step has failed
                self._come_to_rest()
        finally:
            transaction.savepoint_rollback(self.savepoint)
            connection.run_on_commit = []
            restore_guard._is_open.invalidate()

    @initialize(
        parts=st.sampled_from([[], [3000], [2000, 3000], [9000], *BY_ITEM]),
        card=CARDS,
        pledges=st.lists(CARDS, max_size=2),
        taken=unit_rules.TAKEN,
    )
    def begin(self, parts: ByItem | list[int], card: str, pledges: list[str], taken: Sequence[int]) -> None:
        self.bank.begin()
        order = factories.checkout(self.merchant, items=unit_rules.ITEMS)
        self.order = order.pk
        self.split(order.pk, parts, everyone_first=bool(pledges))
        self.take_units(0, taken, unit_rules.ZOE)
        for share, mates_card in zip(order.payment_requests.order_by("-position"), pledges, strict=False):
            self._pay(share, mates_card)
        lead = factories.CustomerFactory.create()
        authorizations.authorize(order.pk, card=self._card(card, order.pk), lead=lead, cause=CAUSE)
        captures.capture(self.merchant, order.pk, cause=CAUSE)

    @rule(which=WHICH, card=CARDS)
    def mate_pays(self, which: int, card: str) -> None:
        opened = PaymentRequest.objects.filter(checkout=self.order, status__in=["open", "paying"])
        share = pick(list(opened.order_by("pk")), which)
        if share is not None:
            with suppress(mate_shares.ShareNotOpen, states.StateConflict, states.OperationInProgress):
                self._pay(share, card)

    @rule()
    def merchant_refunds(self) -> None:
        self.refs += 1
        with suppress(states.StateConflict, states.OperationInProgress):
            refunds.accept(self.merchant, self.order, ref=f"r-{self.refs}", cause=CAUSE)

    @rule(which=WHICH, part=st.sampled_from([1, 2, 3]), is_pending=st.booleans())
    def staff_refund(self, which: int, part: int, is_pending: bool) -> None:
        self.bank.refund(which, part, is_pending=is_pending)

    @rule(which=WHICH, fails=st.booleans())
    def refund_ends(self, which: int, fails: bool) -> None:
        self.bank.end_refund(which, fails=fails)

    @rule(which=WHICH, part=st.sampled_from([1, 1, 2]), is_inquiry=st.booleans())
    def payer_disputes(self, which: int, part: int, is_inquiry: bool) -> None:
        self.bank.dispute(which, part, is_inquiry=is_inquiry)

    @rule(which=WHICH, is_won=st.booleans())
    def bank_decides(self, which: int, is_won: bool) -> None:
        self.bank.decide(which, is_won=is_won)

    @rule(which=WHICH)
    def operator_sends_again(self, which: int) -> None:
        row = pick(ways_out.refused_refunds(self.order), which)
        if row is not None:
            with suppress(NotAllowed):
                sending.send_again(row.pk, cause=CAUSE)

    @rule(which=WHICH)
    def operator_settles_outside(self, which: int) -> None:
        row = pick(ways_out.refused_refunds(self.order), which)
        if row is not None:
            with suppress(NotAllowed):
                settling_outside.settle_outside(row.pk, note="By bank transfer", cause=CAUSE)

    @rule(which=WHICH)
    def operator_takes_back(self, which: int) -> None:
        row = pick(list(Booking.objects.filter(kind="settled_outside").order_by("pk")), which)
        if row is not None:
            with suppress(NotAllowed):
                settling_outside.reverse_booking(row.pk, note="It never arrived", cause=CAUSE)

    @rule(times=st.integers(0, 2))
    def bank_tells(self, times: int) -> None:
        """Deliver each of the bank's notifications `times` times (0, 1 or 2)."""
        for notification in [*self.bank.tell()] * times:
            notifications.handle_notification(notification)

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

    @rule(which=st.integers(0, 99), times=st.integers(1, 2))
    def bank_goes_wrong(self, which: int, times: int) -> None:
        self.bank.make_calls_fail(self.bank.faults[which % len(self.bank.faults)], times)

    @rule(seconds=st.sampled_from([3, 70, 3700, 3700, DAY, DAY * 4]))
    def time_passes(self, seconds: int) -> None:
        ageing.let_pass(seconds, self.backup)
        self.bank.pass_time(seconds)

    @rule()
    def backup_is_made(self) -> None:
        if self.backup is None:
            self.backup = restoring.Backup()

    @rule()
    def database_is_put_back(self) -> None:
        """Restore the backup and run the repair.

        Our database loses all records since the backup. The bank keeps its records.
        """
        if self.backup is not None:
            self.backup.restore()
            self.backup.discard()
            self.bank.end_faults()
            repair.repair(self.backup.made_at)
            self.backup = None
            if PaymentRequest.objects.filter(checkout=self.order, units=[]).exists():
                self.units.clear()  # the restored rows no longer show which units a mate has paid for

    @rule()
    def links_end(self) -> None:
        tasks.end_links()

    @invariant()
    def the_proof_is_clean(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        assert ledger_proof.find_breaches() == []
        assert [row.kind for row in Discrepancy.objects.filter(kind__in=NEVER)] == []
        assert ways_out.cards_with_too_much() == []
        self.proofs += 1
        if self.proofs % 3 == 0:
            assert blind_spots.missed(Checkout.objects.get(pk=self.order)) == []

    def _come_to_rest(self) -> None:
        """End the faults, let time pass until all work is finished, and check the money.

        Then decide all disputes, let time pass again, and check the money again.
        """
        self.bank.end_faults()
        self._let_it_end()
        self._check()
        self.bank.decide_all()
        self._let_it_end()
        self._check()
        checkout = Checkout.objects.select_related("merchant").get(pk=self.order)
        assert ways_out.ways_out(checkout), "a state without a way out"

    def _let_it_end(self) -> None:
        for seconds in TO_REST:
            ageing.let_pass(seconds)
            self.bank.pass_time(seconds)
            self.bank.settle_all()
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
        assert ways_out.card_differences(self.bank.bears()) == []
        if not ways_out.is_disputed():  # while a dispute is open, all refunds wait
            assert ways_out.unexplained(checkout) == []

    def _pay(self, share: PaymentRequest, card: str) -> None:
        used, mate = self._card(card, share.pk), factories.CustomerFactory.create()
        mate_shares.pay(share.pk, card=used, mate=mate, cause=CAUSE, claim=share.claim_digest)

    def _card(self, card: str, subject: UUID) -> CardUse:
        return CardUse(self.bank.token(card, subject), "https://pay.example/confirmed")
