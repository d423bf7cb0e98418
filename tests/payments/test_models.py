"""The database itself refuses a second successful capture of a payment."""

import pytest
from django.db import IntegrityError, transaction
from uuid_utils.compat import uuid7

from checkout.models import Checkout
from payments.models import Operation


@pytest.mark.rule("money.one_capture")
@pytest.mark.django_db
class TestOperations:
    def test_one_capture_succeeds_per_payment(self, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        capture.pk = uuid7()
        with pytest.raises(IntegrityError, match="one_succeeded_capture"), transaction.atomic():
            capture.save(force_insert=True)
