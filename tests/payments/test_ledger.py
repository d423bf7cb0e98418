"""The ledger: a movement is written together with its postings, is recorded once, and never changes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from uuid_utils.compat import uuid7

from checkout import refunds
from checkout.models import Checkout
from config.lib import clock
from payments import ledger, operations
from payments.models import Dispute, Movement, Operation, Posting
from payments.provider import Outcome, Verdict
from tests import mates
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.rule("money.balanced")]


@pytest.fixture
def refunded_part(captured: Checkout) -> Operation:
    """Return a refund part that has reached its card."""
    refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
    mates.pump(captured.pk, rounds=2)
    return Operation.objects.select_related("payment").get(kind="refund")


def lines(movement: Movement) -> dict[str, int]:
    return dict(Posting.objects.filter(transaction=movement.pk).values_list("account", "amount"))


class TestPostings:
    @pytest.mark.parametrize("model", [Posting, Movement])
    def test_are_append_only_and_so_are_movements(self, captured: Checkout, model: Any) -> None:
        for forbidden in (model.objects.all().delete, lambda: model.objects.update(amount=1)):
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                forbidden()

    @pytest.mark.django_db(transaction=True)
    def test_of_a_transaction_must_sum_to_zero(self, captured: Checkout) -> None:
        with pytest.raises(IntegrityError, match="do not sum to zero"), transaction.atomic():
            Posting.objects.create(
                transaction=uuid7(),
                checkout_uuid=captured.pk,
                merchant=captured.merchant,
                account="provider",
                amount=5,
                currency="GBP",
            )
        assert Posting.objects.count() == 2

    def test_of_one_movement_are_created_once(self, captured: Checkout) -> None:
        moved = Movement.objects.select_related("payment").get()
        with pytest.raises(IntegrityError, match="a_transaction_posts_once"), transaction.atomic():
            ledger.post(moved.pk, moved.payment, {ledger.Account.PROVIDER: 1, ledger.Account.MERCHANT: -1})


class TestAnOutcome:
    def test_is_one_movement_with_the_provider_s_reference(self, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        moved = Movement.objects.get()
        assert (moved.kind, moved.amount, moved.operation) == ("captured", 9000, capture)
        assert moved.reference == capture.reference != ""
        assert lines(moved) == {"provider": 9000, "merchant": -9000}
        assert abs(moved.occurred_at - moved.recorded_at) < timedelta(seconds=1)

    def test_of_a_refund_takes_from_the_merchant(self, refunded_part: Operation) -> None:
        moved = Movement.objects.get(operation=refunded_part)
        assert (moved.kind, moved.amount) == ("refunded", -9000)
        assert lines(moved) == {"provider": -9000, "merchant": 9000}

    def test_that_moved_nothing_posts_nothing(self, held: Checkout) -> None:
        assert not Movement.objects.exists() and not Posting.objects.exists()

    def test_without_a_reference_is_recorded_under_the_operation_s_id(self, held: Checkout) -> None:
        operation = Operation.objects.select_related("payment").get(kind="authorize")
        capture = operations.begin(operation.payment, Operation.Kind.CAPTURE, now=clock.now(), cause=CAUSE)
        with transaction.atomic():
            operations.save_outcome(
                capture, Outcome(Verdict.SUCCEEDED), now=clock.now(), lease=capture.lease_token
            )
            reference = Movement.objects.get().reference
            # Do not commit the operation, because the test has not changed the order's row to match it.
            transaction.set_rollback(True)
        assert reference == str(capture.pk)


class TestAFact:
    def test_is_recorded_once(self, refunded_part: Operation) -> None:
        """A movement has the same reference in the answer to its operation and in the provider's books.

        Therefore a constraint can refuse to record it twice.
        """
        told = Movement.objects.get(operation=refunded_part)
        with pytest.raises(IntegrityError, match="a_fact_is_recorded_once"), transaction.atomic():
            ledger.record_movement(
                refunded_part.payment,
                Movement.Kind.REFUNDED,
                9000,
                told.reference,
                refunded_part,
                at=clock.now(),
                now=clock.now(),
            )
        assert Movement.objects.count() == 2 and Posting.objects.count() == 4

    def test_that_a_card_was_charged_happens_once(self, captured: Checkout) -> None:
        capture = Operation.objects.select_related("payment").get(kind="capture")
        with pytest.raises(IntegrityError, match="a_card_is_charged_once"), transaction.atomic():
            facts = {"at": clock.now(), "now": clock.now()}
            ledger.record_movement(capture.payment, Movement.Kind.CAPTURED, 9000, "ch_2", capture, **facts)

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [("refund_returned", 4000), ("dispute_reinstated", 4000), ("dispute_withdrawn", -4000)],
    )
    def test_has_a_sign_that_fits_its_kind(self, refunded_part: Operation, kind: str, expected: int) -> None:
        now = clock.now()
        cause: Operation | Dispute = refunded_part
        if kind.startswith("dispute"):
            facts = {"reference": "dp_1", "amount": 4000, "reason": "fraudulent", "opened_at": now}
            cause = Dispute.objects.create(
                payment=refunded_part.payment,
                checkout_uuid=refunded_part.payment.checkout_uuid,
                created_at=now,
                **facts,
            )
        said = now - timedelta(hours=1)
        ledger.record_movement(
            refunded_part.payment, Movement.Kind(kind), 4000, "fact_1", cause, at=said, now=now
        )
        moved = Movement.objects.get(reference="fact_1")
        assert (moved.amount, moved.occurred_at, moved.recorded_at) == (expected, said, now)
        assert lines(moved) == {"provider": expected, "merchant": -expected}

    def test_must_have_a_cause_that_fits_its_kind(self, captured: Checkout) -> None:
        moved = Movement.objects.get()
        with pytest.raises(IntegrityError, match="a_movement_has_its_cause"), transaction.atomic():
            Movement.objects.create(
                payment_id=moved.payment_id,
                checkout_uuid=captured.pk,
                kind="refunded",
                amount=-1,
                reference="re_1",
                bearer="merchant",
                occurred_at=clock.now(),
                recorded_at=clock.now(),
            )


def test_a_share_is_owed_to_the_lead_until_it_is_reimbursed(
    order: Checkout, shares: list[Any], pay: Callable[..., Checkout]
) -> None:
    mates.pay(shares[0])
    mates.settled(shares[0])
    borne = {(row.kind, row.payment.kind): lines(row) for row in Movement.objects.select_related("payment")}
    amount = shares[0].amount
    assert borne["captured", "share"] == {"provider": amount, "lead": -amount}
    assert borne["refunded", "order"] == {"provider": -amount, "lead": amount}
    assert borne["captured", "order"] == {"provider": order.amount, "merchant": -order.amount}
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(sum(amount), 0) FROM payments_posting WHERE account = 'lead'")
        assert cursor.fetchone() == (0,)
