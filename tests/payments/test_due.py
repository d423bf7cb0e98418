"""When an operation is due, and who takes it."""

from collections.abc import Callable

import pytest
from django.db import connection

from checkout import transitions
from checkout.models import Checkout
from payments import due
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE


@pytest.mark.django_db
class TestClaimDue:
    def test_leases_no_more_than_asked_whatever_the_planner_believes(
        self, acme: Merchant, pay: Callable[..., Checkout]
    ) -> None:
        pay(factories.checkout(acme))
        with connection.cursor() as cursor:
            cursor.execute(
                "ANALYZE payments_operation, payments_payment"
            )  # one row: a nested loop looks cheap
        for _ in range(3):
            transitions.cancel(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
        assert len(due.claim(limit=1)) == 1
