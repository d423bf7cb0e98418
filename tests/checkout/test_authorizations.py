from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout, Customer
from payments.models import Payment
from tests import factories
from webhooks.models import Event


class TestAuthorize:
    @pytest.mark.rule("pay.held")
    def test_holds_the_amount_for_two_minutes_and_tells_the_merchant(self, held: Checkout) -> None:
        assert held.status == "authorized"
        assert held.authorized_at is not None and held.capture_before is not None
        assert (held.capture_before - held.authorized_at).total_seconds() == 120
        event = Event.objects.get()
        assert (event.type, event.valid_until) == ("checkout.authorized", held.capture_before)
        assert factories.balances(held.pk) == {}

    def test_writes_the_order_once_for_a_lead_who_has_signed_in(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        """Each version of its row is one in nearly all of its indexes."""
        unpaid.note(lead=Customer.objects.create(phone="+447700900123"))
        with CaptureQueriesContext(connection) as asked:
            pay(unpaid)
        written = [query for query in asked if "UPDATE checkout_checkout SET" in query["sql"]]
        assert len(written) == 1

    @pytest.mark.rule("pay.declined")
    def test_a_declined_card_leaves_it_unpaid(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        declined = pay(unpaid, "4000000000009995")
        assert declined.status == "created"
        assert Payment.objects.get().decline_reason == "insufficient_funds"
        assert not Event.objects.exists()

    @pytest.mark.rule("pay.declined")
    def test_another_card_may_be_tried(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        pay(unpaid, "4000000000000002")
        assert pay(unpaid).status == "authorized"
