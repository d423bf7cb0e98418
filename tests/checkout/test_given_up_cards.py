"""A payer goes on to another card: the one before is given up."""

from collections.abc import Callable

import pytest

from checkout import captures, given_up_cards, tasks
from checkout.models import Checkout
from payments.models import Operation
from payments.providers.sandbox import fault_injection
from tests.factories import CAUSE, make_late


@pytest.mark.django_db
class TestACardThatWasGivenUp:
    @pytest.fixture
    def given_up(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> Checkout:
        """The bank asked about the first card, another one was chosen, and the first one's void is in doubt."""
        pay(unpaid, "4000002500003155")
        given_up_cards.use_another_card(unpaid.pk)
        fault_injection.set_fault(verb="void", mode="down", times=1)
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "unknown"
        return unpaid

    def test_hinders_neither_another_card_nor_its_capture(
        self, given_up: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        assert pay(given_up).status == "authorized"
        captured = captures.capture(given_up.merchant, given_up.pk, cause=CAUSE)
        assert captured.status == "captured"

    def test_keeps_no_hold_beyond_its_two_minutes(
        self, given_up: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        make_late(pay(given_up))
        tasks.expire_due()
        given_up.refresh_from_db()
        assert (given_up.status, given_up.void_reason) == ("voided", "auth_expired")
