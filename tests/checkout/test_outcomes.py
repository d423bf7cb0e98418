"""How clear, unclear and late responses from the provider change an order."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.db.models import QuerySet

from checkout import cancellations, captures, outcomes, refunds, states, tasks
from checkout.models import Checkout, PaymentRequest
from checkout.proof import ledger_proof
from config.lib import clock
from payments import operation_queue, planning
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation, Payment
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank, fault_injection
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.outages import InDoubt, leave_in_doubt, pass_time, pump
from tests.refusals import refused

pytestmark = pytest.mark.django_db
Answer = Callable[[str, Outcome], None]


@pytest.mark.rule("doubt.sleeper")
class TestALateRefusal:
    """A refusal that arrives after another outcome was recorded. It does not change the recorded outcome."""

    @pytest.mark.parametrize("kind", ["capture", "void", "refund"])
    @pytest.mark.parametrize(
        "verdict", [Verdict.FAILED, Verdict.DECLINED, Verdict.NOT_FOUND, Verdict.PENDING]
    )
    def test_does_not_change_an_operation_that_has_ended(
        self, captured: Checkout, kind: str, verdict: Verdict
    ) -> None:
        if kind != "capture":
            refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
            tasks.finish_operations()
            pump()
        operation = Operation.objects.select_related("payment").exclude(kind="authorize").latest("created_at")
        before = list(Operation.objects.order_by("pk").values()), list(Payment.objects.values())
        factories.record(operation, Outcome(verdict, reason="late", is_vouched=True))
        assert (list(Operation.objects.order_by("pk").values()), list(Payment.objects.values())) == before
        assert ledger_proof.find_breaches() == []


@pytest.mark.rule("doubt.authorize")
def test_a_hold_that_arrives_after_its_authorization_has_failed_is_released(in_doubt: InDoubt) -> None:
    operation = in_doubt("authorize")
    factories.record(operation, Outcome(Verdict.FAILED, reason="never_arrived"))
    factories.record(operation, Outcome(Verdict.SUCCEEDED, reference="late"))
    factories.record(operation, Outcome(Verdict.SUCCEEDED, reference="late"))
    assert Operation.objects.get(kind="void").payment_id == operation.payment_id


@pytest.mark.rule("pay.confirmed_again", "pay.held_for_less")
@pytest.mark.parametrize(
    ("reason", "reference", "voids"),
    [("held_for_less", "", 1), ("card_declined", "pi_1", 1), ("card_declined", "", 0)],
)
def test_a_declined_payment_is_released_only_if_it_might_hold_money_at_the_provider(
    in_doubt: InDoubt, reason: str, reference: str, voids: int
) -> None:
    operation = in_doubt("authorize")
    Payment.objects.update(provider_reference=reference)
    factories.record(operation, Outcome(Verdict.DECLINED, reason=reason))
    assert Operation.objects.filter(kind="void").count() == voids


@pytest.mark.rule("doubt.authorize")
def test_a_hold_on_a_card_that_the_payer_gave_up_is_released(unpaid: Checkout, in_doubt: InDoubt) -> None:
    operation = in_doubt("authorize")
    Payment.objects.update(abandoned_at=clock.now())
    factories.record(operation, Outcome(Verdict.SUCCEEDED))
    unpaid.refresh_from_db()
    assert (unpaid.status, Operation.objects.get(kind="void").state) == ("created", "planned")


def test_an_answer_that_changes_only_the_operation_marks_the_order_as_changed(captured: Checkout) -> None:
    refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
    (refund,) = operation_queue.claim(limit=1)
    before = Checkout.objects.get().updated_at
    factories.record(refund, Outcome(Verdict.PENDING, reference="r"))
    order = Checkout.objects.get()
    assert (order.status, order.updated_at > before) == ("refunding", True)


def test_an_answer_that_repeats_the_previous_one_does_not_mark_the_order_as_changed(
    accepted: Operation,
) -> None:
    Operation.objects.filter(pk=accepted.pk).update(next_attempt_at=clock.now())
    (refund,) = operation_queue.claim(limit=1)
    before = Checkout.objects.get().updated_at
    assert factories.record(refund, Outcome(Verdict.PENDING, reference="r")).is_kept
    assert Checkout.objects.get().updated_at == before


@pytest.mark.rule("doubt.old_key")
def test_a_late_refusal_under_an_old_key_is_not_reported_as_a_success(accepted: Operation) -> None:
    planning.replace_under_new_key(accepted, now=clock.now())
    assert not factories.record(accepted, Outcome(Verdict.FAILED, reason="refused")).is_kept
    assert not Discrepancy.objects.exists()


@pytest.mark.parametrize(
    "record",
    [
        lambda: outcomes.record_outcome(uuid4(), uuid4(), Outcome(Verdict.UNKNOWN), lease=None),
        lambda: outcomes.renew_fence(uuid4(), uuid4(), reason="", is_proven=False),
    ],
)
def test_recording_is_refused_within_a_transaction_that_could_roll_it_back(
    record: Callable[[], object],
) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        record()


@pytest.mark.rule("money.discrepancy")
def test_a_charge_after_the_end_is_reported_once_even_if_it_is_recorded_twice(held: Checkout) -> None:
    cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
    void = Operation.objects.select_related("payment").get(kind="void")
    factories.record(void, Outcome(Verdict.FAILED, reason="already_captured"))
    planning.plan_operations([void.payment_id], Operation.Kind.CAPTURE, now=clock.now(), cause=CAUSE)
    late = Operation.objects.select_related("payment").get(kind="capture")
    factories.record(late, Outcome(Verdict.SUCCEEDED, reference="late"))
    told = Discrepancy.objects.get()
    assert (told.kind, told.subject, told.operation) == ("captured_after_the_end", held.payment_id, void)


@pytest.mark.rule("money.nothing_held")
def test_a_hold_that_staff_captured_after_the_end_is_not_reported_as_a_forgotten_hold(held: Checkout) -> None:
    bank.act_in_dashboard(kind="capture", payment=held.payment_id or held.pk)
    cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
    mates.pump(held.pk)
    assert Payment.objects.get().status == "captured" and ledger_proof.find_breaches() == []
    assert [row.kind for row in Discrepancy.objects.all()] == ["captured_after_the_end"]


@pytest.fixture
def bank_answers(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return a function that replaces the bank's answers for a verb.

    Each call of this verb then returns the given outcome and has no effect at the bank.
    """

    def answers(verb: str, outcome: Outcome) -> None:
        call = fault_injection.call_with_faults

        def answer(called_verb: str, arguments: dict[str, Any]) -> Outcome:
            return outcome if called_verb == verb else call(called_verb, arguments)

        monkeypatch.setattr(fault_injection, "call_with_faults", answer)

    return answers


class TestACapture:
    def test_that_is_pending_is_in_doubt_and_is_not_started_again(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(captures, "JOIN_SECONDS", 0.0)
        monkeypatch.setattr(captures, "ASK_AGAIN_SECONDS", 99.0)
        fault_injection.set_fault(verb="capture", mode="pending_for_ever", times=1)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        with pytest.raises(states.OperationInProgress):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert Operation.objects.get(kind="capture").state == "pending"
        make_late(held)
        tasks.expire_due()
        held.refresh_from_db()
        assert held.status == "authorized"

    def test_in_doubt_is_not_decided_by_a_refused_fence(self, held: Checkout, bank_answers: Answer) -> None:
        leave_in_doubt(held)
        make_late(held)
        bank_answers("void", Outcome(Verdict.FAILED, reason="try_later"))
        pump()
        tasks.expire_due()
        held.refresh_from_db()
        first, second = Operation.objects.filter(kind="void").order_by("created_at")
        assert (held.status, first.state, first.reason) == ("authorized", "failed", "new_key")
        assert (second.state, second.attempts) == ("in_flight", 0)
        outcomes.renew_fence(held.pk, first.pk, reason="try_later", is_proven=True)
        held.refresh_from_db()
        assert (held.status, Operation.objects.filter(kind="void").count()) == ("authorized", 2)

    @pytest.mark.rule("doubt.capture_after")
    def test_whose_fence_is_refused_lapses_once_no_call_can_be_carried_out(
        self, held: Checkout, bank_answers: Answer
    ) -> None:
        lost = leave_in_doubt(held)
        make_late(held)
        bank_answers("void", Outcome(Verdict.FAILED, reason="try_later"))
        pump()
        for hours, status in ((24, "authorized"), (2, "voided")):
            pass_time(lost, hours=hours)
            pump()
            held.refresh_from_db()
            assert held.status == status
        assert (held.status, held.voided_at, held.void_reason) == (
            "voided",
            held.capture_before,
            "auth_expired",
        )
        assert Operation.objects.get(kind="void", ended_at=None).state == "in_flight"
        pump()
        found = Discrepancy.objects.get()
        assert (found.kind, found.subject) == ("void_refused", held.payment_id)

    def test_whose_fence_is_refused_stays_held_while_the_provider_cannot_rule_it_out(
        self, held: Checkout, bank_answers: Answer
    ) -> None:
        lost = leave_in_doubt(held)
        make_late(held)
        bank_answers("void", Outcome(Verdict.FAILED, reason="try_later"))
        pump()
        pass_time(lost, hours=26)
        fault_injection.set_fault(verb="look_up", mode="not_vouched", times=9)
        pump()
        held.refresh_from_db()
        assert held.status == "authorized"

    @pytest.mark.rule("doubt.capture_after")
    def test_whose_fence_is_refused_after_eight_days_lapses_without_a_proof(
        self, held: Checkout, bank_answers: Answer
    ) -> None:
        """After eight days, banks have released the hold automatically, so no further fence is planned."""
        leave_in_doubt(held)
        make_late(held)
        bank_answers("void", Outcome(Verdict.FAILED, reason="try_later"))
        Payment.objects.update(created_at=clock.now() - timedelta(days=8))
        pump()
        held.refresh_from_db()
        fence = Operation.objects.get(kind="void")
        assert (held.status, fence.state, fence.reason) == ("voided", "failed", "try_later")

    def test_whose_fence_is_refused_repeatedly_is_fenced_at_growing_intervals(
        self, held: Checkout, bank_answers: Answer
    ) -> None:
        """Each interval is ten seconds longer than the previous one, up to a minute.

        An interval is never shorter than the time after which a new key is allowed.
        """
        leave_in_doubt(held)
        make_late(held)
        bank_answers("void", Outcome(Verdict.FAILED, reason="try_later"))
        waits, reports = [], []
        for _ in range(8):
            pump()
            fence = Operation.objects.get(kind="void", ended_at=None)
            assert fence.next_attempt_at is not None
            waits.append((fence.next_attempt_at - fence.created_at).total_seconds())
            reports.append(Discrepancy.objects.filter(kind="void_refused").count())
        assert waits == [10, 20, 30, 40, 50, 60, 64, 128]
        assert reports == [0, 0, 1, 1, 1, 1, 1, 1]

    @pytest.mark.rule("doubt.capture_after")
    @pytest.mark.parametrize(("seconds_left", "wait"), [(11, 10), (4, 4), (0, 10), (-1, 10)])
    def test_in_doubt_is_looked_up_at_its_deadline_at_the_latest(
        self, held: Checkout, seconds_left: int, wait: int
    ) -> None:
        """The look-up does not wait for the usual interval of ten seconds, which applies again after the deadline."""
        leave_in_doubt(held)
        Operation.objects.update(attempts=20)
        now, capture = clock.now(), Operation.objects.select_related("payment").get(kind="capture")
        held.capture_before = now + timedelta(seconds=seconds_left)
        assert outcomes.conclude_operation(held, capture, Outcome(Verdict.UNKNOWN), now=now)
        capture.refresh_from_db()
        assert capture.next_attempt_at == now + timedelta(seconds=wait)

    def test_in_doubt_keeps_the_lease_of_another_process(self, held: Checkout) -> None:
        mine, theirs = leave_in_doubt(held), uuid4()
        Operation.objects.filter(pk=mine.pk).update(lease_token=theirs)
        factories.record(mine, Outcome(Verdict.NOT_FOUND))
        assert Operation.objects.get(pk=mine.pk).lease_token == theirs

    def test_during_a_refund_is_refused_even_if_the_refund_is_in_doubt(
        self, api: Api, captured: Checkout
    ) -> None:
        fault_injection.set_fault(verb="refund", mode="down", times=1)
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        tasks.finish_operations()
        assert Operation.objects.get(kind="refund").state == "unknown"
        refused(api.post(f"checkouts/{captured.pk}/capture"), 409, "not_capturable")


@pytest.mark.rule("lapse.release")
class TestARelease:
    """The release of the hold after the merchant has cancelled the order."""

    def test_that_is_refused_repeatedly_is_sent_again_at_growing_intervals(self, held: Checkout) -> None:
        """From the third refusal on, the service reports the release."""
        cancelled = cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        waits, reports = [], []
        for _ in range(8):
            before = clock.now()
            void = refuse_release(cancelled, now=before).get(ended_at=None)
            assert void.next_attempt_at is not None
            waits.append((void.next_attempt_at - before).total_seconds())
            reports.append(Discrepancy.objects.filter(kind="void_refused", closed_at=None).count())
        assert reports == [0, 0, 1, 1, 1, 1, 1, 1]
        assert waits == [10, 40, 160, 640, 2560, 10_240, 21_600, 21_600]

    @pytest.mark.parametrize(
        "end", [Outcome(Verdict.SUCCEEDED), Outcome(Verdict.FAILED, reason="already_captured")]
    )
    def test_that_was_refused_repeatedly_is_no_longer_reported_once_no_money_is_held(
        self, held: Checkout, end: Outcome
    ) -> None:
        cancelled = cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        for _ in range(3):
            void = refuse_release(cancelled, now=clock.now()).get(ended_at=None)
        report = Discrepancy.objects.get(kind="void_refused", closed_at=None)
        assert outcomes.conclude_operation(cancelled, void, end, now=clock.now())
        report.refresh_from_db()
        assert report.closed_at is not None

    @pytest.mark.parametrize(("late_by", "planned"), [(timedelta(0), 1), (timedelta(microseconds=1), 0)])
    def test_that_is_refused_is_sent_again_for_eight_days(
        self, held: Checkout, late_by: timedelta, planned: int
    ) -> None:
        cancelled = cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        now = Payment.objects.get().created_at + timedelta(days=8) + late_by
        assert refuse_release(cancelled, now=now).filter(ended_at=None).count() == planned


def refuse_release(checkout: Checkout, *, now: datetime) -> QuerySet[Operation]:
    """Record that the provider refused the planned void at `now`. Return a query for all voids."""
    voids = Operation.objects.filter(kind="void").select_related("payment")
    refusal = Outcome(Verdict.FAILED, reason="try_later")
    assert outcomes.conclude_operation(checkout, voids.get(ended_at=None), refusal, now=now)
    return voids


class TestARefund:
    @pytest.mark.rule("money.settled")
    @pytest.mark.parametrize(
        ("verdict", "is_closed"),
        [(Verdict.SUCCEEDED, True), (Verdict.FAILED, False), (Verdict.PENDING, False)],
    )
    def test_closes_the_reports_about_its_card_only_if_it_succeeds(
        self, captured: Checkout, verdict: Verdict, is_closed: bool
    ) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        refund = Operation.objects.select_related("payment").get(kind="refund")
        reporting.report(kinds.REFUND_PART_FAILED, refund.payment_id)
        factories.record(refund, Outcome(verdict))
        closed_at, note = Discrepancy.objects.values_list("closed_at", "note").get(kind="refund_part_failed")
        assert (closed_at is not None, note) == (is_closed, "The card has got it." if is_closed else "")

    def test_to_a_mates_card_marks_the_share_as_refunded(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        assert mates.settled(shares[0]) == "reimbursed"
        mates.give_back(order)
        part = Operation.objects.select_related("payment").get(payment__subject=shares[0].pk, kind="refund")
        factories.record(part, Outcome(Verdict.SUCCEEDED))
        shares[0].refresh_from_db()
        assert shares[0].status == "refunded"
