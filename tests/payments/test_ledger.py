import pytest
from django.db import IntegrityError, connection, transaction
from uuid_utils.compat import uuid7

from checkout import proof
from checkout.models import Checkout
from payments.models import Operation, Posting


def without_guards(sql: str) -> None:
    """What a person with the database's keys could do."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(sql)
        cursor.execute("SET session_replication_role = DEFAULT")


@pytest.mark.django_db
class TestPostings:
    def test_are_append_only(self, captured: Checkout) -> None:
        for forbidden in (Posting.objects.all().delete, lambda: Posting.objects.update(amount=1)):
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                forbidden()

    @pytest.mark.django_db(transaction=True)
    def test_of_a_transaction_balance_or_do_not_exist(self, captured: Checkout) -> None:
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


@pytest.mark.django_db
class TestProof:
    def test_holds_after_a_capture(self, captured: Checkout) -> None:
        assert proof.breaches() == []
        assert proof.size() == (1, 2)

    @pytest.mark.parametrize(
        ("broken", "invariant"),
        [
            ("UPDATE payments_posting SET amount = amount + 1 WHERE account = 'provider'", "sums to zero"),
            ("DELETE FROM payments_posting", "is in the ledger"),
            ("UPDATE payments_posting SET transaction = gen_random_uuid()", "no operation moved"),
            ("UPDATE payments_operation SET amount = 1 WHERE kind = 'capture'", "one capture of the amount"),
            (
                "UPDATE payments_operation SET state = 'failed' WHERE kind = 'capture'",
                "one capture of the amount",
            ),
            ("UPDATE checkout_checkout SET amount = 1", "have borne the amount"),
            (
                "UPDATE checkout_checkout SET status = 'voided', captured_at = NULL,"
                " voided_at = now(), void_reason = 'auth_expired'",
                "nothing on any account",
            ),
            (
                "UPDATE checkout_checkout SET status = 'refunded', refunded_amount = amount,"
                " last_refund_at = now()",
                "settled refund of everything",
            ),
        ],
    )
    def test_names_the_checkout_when_something_was_tampered_with(
        self, captured: Checkout, broken: str, invariant: str
    ) -> None:
        without_guards(broken)
        found = [breach for breach in proof.breaches() if invariant in breach.invariant]
        assert [breach.checkout_uuid for breach in found] == [captured.pk]


@pytest.mark.django_db
class TestOperations:
    def test_one_capture_succeeds_per_payment(self, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        capture.pk = uuid7()
        with pytest.raises(IntegrityError, match="one_succeeded_capture"), transaction.atomic():
            capture.save(force_insert=True)
