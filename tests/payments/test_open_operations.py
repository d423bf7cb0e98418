"""The service finds open card operations, for one order and for lists of orders."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from payments import open_operations
from payments.models import Merchant, Operation, Payment
from tests import factories, mates

pytestmark = pytest.mark.django_db
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
InDoubt = Callable[..., Operation]


class TestOrdersWithCallSince:
    @pytest.mark.parametrize("kind", ["authorize", "capture"])
    def test_include_only_the_merchants_own_orders(
        self, in_doubt: InDoubt, rival: Merchant, kind: str
    ) -> None:
        operation = in_doubt(kind)
        Operation.objects.filter(pk=operation.pk).update(state="in_flight")
        assert open_operations.orders_with_call_since(operation.payment.merchant_id, LONG_AGO) == [
            operation.payment.checkout_uuid
        ]
        assert open_operations.orders_with_call_since(rival.pk, LONG_AGO) == []

    def test_exclude_an_operation_once_it_has_any_response(self, in_doubt: InDoubt) -> None:
        """Even an unclear answer changes the order's row. From then on, the operation does not list the order.

        Otherwise, if a bank were down for an hour, all orders of this hour would be listed.
        """
        operation = in_doubt("authorize")
        assert operation.state == "unknown"
        assert open_operations.orders_with_call_since(operation.payment.merchant_id, LONG_AGO) == []

    def test_exclude_operations_of_a_mates_card(self, in_doubt: InDoubt) -> None:
        operation = in_doubt("authorize")
        Operation.objects.filter(pk=operation.pk).update(state="in_flight")
        others = factories.checkout(operation.payment.merchant)
        Payment.objects.update(kind="share", checkout_uuid=others.pk)
        assert open_operations.orders_with_call_since(operation.payment.merchant_id, LONG_AGO) == []

    def test_exclude_releases(self, in_doubt: InDoubt) -> None:
        operation = in_doubt("void")
        assert open_operations.orders_with_call_since(operation.payment.merchant_id, LONG_AGO) == []

    def test_exclude_operations_that_have_ended(self, in_doubt: InDoubt) -> None:
        operation = in_doubt("authorize")
        mates.pump(operation.payment.checkout_uuid)
        assert open_operations.orders_with_call_since(operation.payment.merchant_id, LONG_AGO) == []
