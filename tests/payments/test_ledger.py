import pytest
from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from checkout.models import Checkout
from payments.models import Posting


@pytest.mark.rule("money.balanced")
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
