"""The nightly reconciliation reads the books of every changed payment, and leaves no gap between two nights."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from checkout import captures, refunds, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib import clock
from payments import provider
from payments import tasks as payment_tasks
from payments.inquiring import inquiries, reconciliation
from payments.models import Discrepancy, Dispute, Inquiry, Merchant, Movement, Operation, Payment, Reconciled
from payments.provider import ProviderUnreachable
from payments.providers.sandbox import books, client, settling
from payments.providers.sandbox.models import BankNotification, Call
from payments.providers.sandbox.models import Dispute as BankDispute
from tests import factories, mates
from tests.checkout.proof.tampering import without_guards
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.rule("money.reconciled")]
RETURNS = "4000000000007726"


def moment() -> datetime:
    """Return the time up to which the books have been read."""
    return Reconciled.objects.get().until


def asked_about() -> set[UUID]:
    return set(Inquiry.objects.values_list("payment_id", flat=True))


def age_rows(**span: float) -> None:
    """Backdate all operations, movements and disputes by this duration, in our database and at the bank.

    Also delete all inquiries.
    """
    ago = clock.now() - timedelta(**span)
    Call.objects.update(created_at=ago, changed_at=ago)
    BankDispute.objects.update(opens_at=ago)
    Operation.objects.update(created_at=ago)
    Operation.objects.filter(ended_at__isnull=False).update(ended_at=ago)
    without_guards("UPDATE payments_movement SET recorded_at = %(ago)s", ago=ago)
    Inquiry.objects.all().delete()


@pytest.fixture
def failing_list(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make the provider's list of changes fail after the first payment. Return a function that repairs the list."""
    known = books.changed_payments

    def breaks_off(*, since: datetime) -> Iterator[UUID]:
        yield from list(known(since=since))[:1]
        raise ProviderUnreachable

    monkeypatch.setitem(client.BANK_CALLS, "changed", breaks_off)
    return lambda: monkeypatch.setitem(client.BANK_CALLS, "changed", known)


class TestTheWatermark:
    def test_is_the_start_of_the_last_complete_run(self) -> None:
        before = clock.now()
        reconciliation.run()
        assert before <= moment() <= clock.now()
        first = moment()
        reconciliation.run()
        assert moment() > first and Reconciled.objects.count() == 1

    def test_does_not_change_when_a_run_breaks_off(
        self, captured: Checkout, failing_list: Callable[[], None]
    ) -> None:
        then = clock.now() - timedelta(hours=30)
        Reconciled.objects.create(until=then)
        with pytest.raises(ProviderUnreachable):
            reconciliation.run()
        assert moment() == then

    def test_is_used_minus_five_minutes_by_the_next_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[datetime] = []

        def changed(*, since: datetime) -> list[UUID]:
            asked.append(since)
            return []

        monkeypatch.setitem(client.BANK_CALLS, "changed", changed)
        then = clock.now() - timedelta(days=12)
        Reconciled.objects.create(until=then)
        reconciliation.run()
        assert asked == [then - timedelta(minutes=5)]
        reconciliation.run(then - timedelta(days=1))
        assert asked[1] == then - timedelta(days=1, minutes=5), "further back where that is asked for"
        reconciliation.run(clock.now())
        assert asked[2] < clock.now() - timedelta(minutes=5), "and never later than the watermark"

    def test_is_two_days_ago_before_the_first_run(self) -> None:
        now = clock.now()
        assert reconciliation.last_complete_until(now) == now - timedelta(hours=48)


class TestThreeFailedNights:
    def test_lose_no_dispute(self, captured: Checkout, failing_list: Callable[[], None]) -> None:
        """A dispute is found after four days in which no message came and no reconciliation succeeded."""
        reconciliation.last_complete_until(clock.now())
        Reconciled.objects.create(until=clock.now() - timedelta(days=5))
        client.call_bank("dispute", payment=captured.payment_id)
        age_rows(days=4)
        BankDispute.objects.update(is_reported=True)
        for _ in range(3):
            with pytest.raises(ProviderUnreachable):
                payment_tasks.reconcile()
            Inquiry.objects.all().delete()
        assert not Dispute.objects.exists()
        failing_list()
        payment_tasks.reconcile()
        tasks.answer_inquiries()
        assert Dispute.objects.get().status == "open" and ledger_proof.find_breaches() == []

    def test_still_read_the_payments_that_they_found(
        self, captured: Checkout, failing_list: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reconciliation, "CHUNK", 1)
        with pytest.raises(ProviderUnreachable):
            reconciliation.run()
        assert asked_about() == {captured.payment_id}


class TestAPayment:
    def test_that_changed_at_the_provider_is_read(self, captured: Checkout) -> None:
        age_rows(days=30)
        client.call_bank("act_in_dashboard", kind="refund", payment=captured.payment_id, amount=1000)
        reconciliation.run()
        assert asked_about() == {captured.payment_id}

    @pytest.mark.parametrize("is_unsure", [False, True])
    def test_with_a_local_movement_is_read_even_if_the_provider_lists_no_change(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch, is_unsure: bool
    ) -> None:
        monkeypatch.setitem(client.BANK_CALLS, "changed", lambda *, since: [])
        age_rows(days=30)
        reconciliation.run()
        assert asked_about() == set(), "nothing has changed since"
        assert captured.payment_id is not None
        if is_unsure:
            Operation.objects.filter(kind="capture").update(ended_at=clock.now())
        else:
            Movement.objects.create(
                payment_id=captured.payment_id,
                checkout_uuid=captured.pk,
                kind="refunded",
                amount=-1,
                reference="re_1",
                operation=Operation.objects.get(kind="capture"),
                bearer="merchant",
                occurred_at=clock.now(),
                recorded_at=clock.now(),
            )
        reconciliation.run()
        assert asked_about() == {captured.payment_id}

    @pytest.mark.parametrize("kind", ["captured", "refunded"])
    def test_with_a_movement_missing_from_the_books_is_reported(
        self, captured: Checkout, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A movement is reported only once it is older than SKEW. The movement in this test is new.
        monkeypatch.setattr(reconciliation, "SKEW", timedelta(0))
        if kind == "refunded":
            refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
            mates.pump(captured.pk, rounds=2)
        operation = Operation.objects.get(kind={"captured": "capture", "refunded": "refund"}[kind])
        BankNotification.objects.all().delete()
        Call.objects.filter(reference=operation.pk).delete()
        payment_tasks.reconcile()
        tasks.answer_inquiries()
        left = Discrepancy.objects.get()
        assert (left.kind, left.operation) == ("missing_there", operation)

    def test_that_we_do_not_have_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            type(provider.current_provider()), "changed", lambda *_: [uuid7(), "nonsense", None]
        )
        assert reconciliation.run() == 3
        assert asked_about() == set()

    def test_with_an_already_answered_inquiry_is_read_again(self, captured: Checkout) -> None:
        reconciliation.run()
        claim = inquiries.claim()
        assert claim is not None
        reconciliation.run()
        inquiries.close(claim)
        assert asked_about() == {captured.payment_id}


@pytest.mark.parametrize(
    "status", ["created", "authorized", "captured", "refunding", "refunded", "voided", "lapsed", "expired"]
)
def test_agreeing_books_leave_no_discrepancy(at: Callable[[str], Checkout], status: str) -> None:
    at(status)
    for _ in range(2):
        payment_tasks.reconcile()
        tasks.answer_inquiries()
        assert not Discrepancy.objects.exists()
        tasks.finish_operations()


def test_a_night_takes_a_few_statements_however_many_payments_moved(
    acme: Merchant, pay: Callable[..., Checkout]
) -> None:
    reconciliation.run()
    asked = []
    for count in (1, 6):
        for _ in range(count):
            pay(factories.checkout(acme))
        with CaptureQueriesContext(connection) as queries:
            reconciliation.run()
        asked.append(len(queries))
    assert asked[0] == asked[1] <= 15
    assert len(asked_about()) == 7


@pytest.mark.rule("money.late")
class TestLateChanges:
    """Changes that happen days after the order, and without a message. The next nightly run finds them."""

    @pytest.fixture
    def reconcile_after(self) -> Callable[..., None]:
        """Return a function that makes all rows five days old, lets the bank act, and runs the reconciliation."""

        def learned(happens: Callable[[], object]) -> None:
            age_rows(days=5)
            happens()
            payment_tasks.reconcile()
            tasks.answer_inquiries()
            assert ledger_proof.find_breaches() == []

        return learned

    def test_a_refund_that_is_returned(
        self, unpaid: Checkout, pay: Callable[..., Checkout], reconcile_after: Callable[..., None]
    ) -> None:
        captures.capture(unpaid.merchant, pay(unpaid, RETURNS).pk, cause=CAUSE)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk, rounds=2)
        settling.advance(payments=[Payment.objects.get().pk], seconds=3)
        reconcile_after(settling.settle_due)
        assert [row.kind for row in Discrepancy.objects.all()] == ["refund_returned"]

    def test_a_dispute_and_its_decision(
        self, captured: Checkout, reconcile_after: Callable[..., None]
    ) -> None:
        payment = captured.payment_id
        reconcile_after(lambda: client.call_bank("dispute", payment=payment))
        assert Dispute.objects.get().status == "open"
        reconcile_after(lambda: client.call_bank("decide", payment=payment, is_won=False))
        assert Dispute.objects.get().status == "lost"

    def test_an_operation_in_the_dashboard(
        self, captured: Checkout, reconcile_after: Callable[..., None]
    ) -> None:
        payment = captured.payment_id
        reconcile_after(
            lambda: client.call_bank("act_in_dashboard", kind="refund", payment=payment, amount=1000)
        )
        reconcile_after(settling.settle_due)
        assert Movement.objects.get(kind="refunded").amount == -1000


class TestTheCommand:
    def run(self, *arguments: str) -> tuple[int, str]:
        """Return the command's exit code and output."""
        said = StringIO()
        try:
            call_command("reconcile", *arguments, stdout=said)
        except SystemExit as ended:
            return int(str(ended.code)), said.getvalue()
        return 0, said.getvalue()

    def test_prints_how_many_payments_were_read(self, captured: Checkout) -> None:
        assert self.run() == (0, "2 payments read, 0 discrepancies\n")
        assert not Inquiry.objects.exists(), "and reads them"

    def test_prints_each_discrepancy_and_exits_1(
        self, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A movement is reported only once it is older than SKEW. The movement in this test is new.
        monkeypatch.setattr(reconciliation, "SKEW", timedelta(0))
        capture = Operation.objects.get(kind="capture")
        Call.objects.filter(reference=capture.pk).delete()
        code, said = self.run("--since-hours", "1")
        assert code == 1 and said.startswith(f"{capture.pk}  missing_there  ")
        assert said.endswith("2 payments read, 1 discrepancies\n")

    def test_looks_back_as_many_hours_as_requested(self, captured: Checkout) -> None:
        Reconciled.objects.create(until=clock.now())
        age_rows(days=9)
        assert self.run()[1].startswith("0 payments read")
        assert self.run("--since-hours", "240")[1].startswith("2 payments read")

    def test_reads_no_payment_if_the_provider_is_unreachable(
        self, captured: Checkout, failing_list: Callable[[], None]
    ) -> None:
        with pytest.raises(CommandError, match="does not answer"):
            call_command("reconcile")
        assert not Discrepancy.objects.exists() and not Reconciled.objects.exists()
