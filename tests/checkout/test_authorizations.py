from collections.abc import Callable

import pytest

from checkout.models import Checkout
from payments.models import Payment
from tests import factories
from webhooks.models import Event


class TestAuthorize:
    @pytest.mark.rule("pay.held")
    def test_holds_the_amount_for_two_minutes_and_notifies_the_merchant(self, held: Checkout) -> None:
        assert held.status == "authorized"
        assert held.authorized_at is not None and held.capture_before is not None
        assert (held.capture_before - held.authorized_at).total_seconds() == 120
        event = Event.objects.get()
        assert (event.type, event.valid_until) == ("checkout.authorized", held.capture_before)
        assert factories.balances(held.pk) == {}

    @pytest.mark.rule("pay.declined")
    def test_a_declined_card_leaves_it_unpaid(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        declined = pay(unpaid, "4000000000009995")
        assert declined.status == "created"
        assert Payment.objects.get().decline_reason == "insufficient_funds"
        assert not Event.objects.exists()

    @pytest.mark.rule("pay.declined")
    def test_another_card_can_be_tried(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        pay(unpaid, "4000000000000002")
        assert pay(unpaid).status == "authorized"
