"""Text that is stored encrypted, and that can be found only by its complete value."""

import pytest
from django.core.exceptions import FieldError
from django.db import IntegrityError, connection, transaction

from checkout.models import Checkout, Customer, PaymentRequest
from hosted_page.models import SignInCode
from tests import mates

LEA, FINN = "+447700900123", "+447700900456"
PLACES = [(model, model._meta.db_table) for model in (Customer, PaymentRequest, SignInCode)]


def column(table: str) -> list[str | None]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT phone FROM {table} ORDER BY id")
        return [row[0] for row in cursor.fetchall()]


@pytest.mark.django_db
@pytest.mark.rule("privacy.numbers")
class TestAPhoneNumber:
    def test_is_stored_in_no_table_in_clear_text(self) -> None:
        Customer.objects.create(phone=LEA)
        [kept] = column("checkout_customer")
        assert kept and LEA not in kept and "447700900123" not in kept
        assert Customer.objects.get().phone == LEA

    def test_is_found_by_its_full_value_only(self) -> None:
        lea, finn = Customer.objects.create(phone=LEA), Customer.objects.create(phone=FINN)
        assert (Customer.objects.get(phone=LEA), Customer.objects.get(phone=FINN)) == (lea, finn)
        assert Customer.objects.get_or_create(phone=LEA) == (lea, False)
        assert not Customer.objects.filter(phone=LEA[:-1]).exists()
        assert Customer.objects.exclude(phone=LEA).get() == finn
        for lookup in ("startswith", "in", "contains", "gt"):
            with pytest.raises(FieldError):
                Customer.objects.filter(**{f"phone__{lookup}": LEA})

    def test_belongs_to_one_customer(self) -> None:
        Customer.objects.create(phone=LEA)
        with pytest.raises(IntegrityError), transaction.atomic():
            Customer.objects.create(phone=LEA)
        for _ in range(2):
            Customer.objects.create(phone=None)
        assert Customer.objects.filter(phone=None).count() == 2

    def test_that_is_empty_stays_empty(self, unpaid: Checkout) -> None:
        shares = mates.split(unpaid, 1000)
        assert [share.phone for share in PaymentRequest.objects.filter(phone="")] == [""] * len(shares)
        assert set(column("checkout_paymentrequest")) == {""}
        PaymentRequest.objects.update(phone=FINN)
        assert not PaymentRequest.objects.filter(phone="").exists()
        assert PaymentRequest.objects.filter(phone=FINN).count() == len(shares)

    def test_is_looked_up_in_an_index(self) -> None:
        for rows, index in (
            (Customer.objects.filter(phone=LEA), "one_customer_a_number"),
            (PaymentRequest.every.filter(phone=LEA), "share_asked_of_number"),
        ):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL enable_seqscan = off")
                assert index in rows.explain()
