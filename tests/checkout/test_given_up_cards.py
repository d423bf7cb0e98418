"""If a payer uses another card, the service gives up the previous card."""

from collections.abc import Callable

import pytest

from checkout import authorizations, captures, given_up_cards, mate_shares, tasks
from checkout.models import Checkout
from payments.models import Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank, fault_injection
from tests.factories import CAUSE, CustomerFactory, make_late


@pytest.mark.django_db
@pytest.mark.rule("pay.lead")
def test_a_previous_lead_cannot_give_up_the_current_leads_card(unpaid: Checkout) -> None:
    first, second = CustomerFactory.create(), CustomerFactory.create()
    for lead in (first, second):
        mate_shares.make_lead(unpaid.pk, lead)
    token = bank.tokenise(subject=unpaid.pk, number="4000002500003155")
    authorizations.authorize(unpaid.pk, card=CardUse(token), lead=second, cause=CAUSE)
    for lead, is_open in ((first, True), (second, False)):
        given_up_cards.allow_another_card(unpaid.pk, unpaid.pk, lead=lead.pk)
        assert Operation.objects.get(kind="authorize").is_open == is_open


@pytest.mark.django_db
class TestACardThatWasGivenUp:
    @pytest.fixture
    def given_up(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> Checkout:
        """Give up a card that waits for the payer's confirmation. The outcome of its void stays unknown."""
        pay(unpaid, "4000002500003155")
        given_up_cards.allow_another_card(unpaid.pk)
        fault_injection.set_fault(verb="void", mode="down", times=1)
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "unknown"
        return unpaid

    def test_does_not_block_another_card_or_its_capture(
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
