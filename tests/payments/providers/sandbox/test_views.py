"""The bank's own pages: the payer enters a card on one page, and confirms the payment on another."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client

from checkout.models import Checkout
from payments.providers.sandbox.cards import CARDS
from payments.providers.sandbox.models import Call, CardSession, Charge
from tests.hosted_page.browsers import ChallengedLead, words
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db


@pytest.fixture
def lea(unpaid: Checkout) -> ChallengedLead:
    return ChallengedLead(unpaid)


class TestTheQuestion:
    def test_names_shop_amount_and_card_on_the_banks_own_page(self, lea: ChallengedLead) -> None:
        page = lea.client.get(lea.question)
        for fact in ("Sandbox Bank", "Acme Tickets", "£90.00", "Visa ending 3155", "TEST"):
            assert fact in words(page)
        assert "/brand/" not in words(page) and page["Cache-Control"].count("no-store")

    def test_of_an_unknown_key_is_not_found(self, lea: ChallengedLead) -> None:
        with nothing_moves():
            assert lea.client.get(f"/bank/challenge/{uuid4()}").status_code == 404
            assert lea.client.post(f"/bank/challenge/{uuid4()}", {"answer": "confirm"}).status_code == 404

    def test_is_shown_only_for_authorizations(self, lea: ChallengedLead) -> None:
        Call.objects.update(kind="void")
        assert lea.client.get(lea.question).status_code == 404

    @pytest.mark.parametrize("fields", [{}, {"answer": ""}, {"answer": "perhaps"}])
    def test_is_shown_again_after_an_invalid_answer(
        self, lea: ChallengedLead, fields: dict[str, str]
    ) -> None:
        page = lea.client.post(lea.question, fields)
        assert page.status_code == 422 and "Is this you?" in words(page)
        assert Charge.objects.get().state == "challenged"

    def test_needs_a_csrf_token_to_be_answered(self, lea: ChallengedLead) -> None:
        strict = Client(enforce_csrf_checks=True)
        assert strict.post(lea.question, {"answer": "confirm"}).status_code == 403
        assert Charge.objects.get().state == "challenged"

    def test_without_a_return_address_says_that_it_is_answered(self, lea: ChallengedLead) -> None:
        Charge.objects.update(return_url="")
        assert "You have answered" in words(lea.answer("confirm"))
        assert "You have answered" in words(lea.client.get(lea.question))


def test_visits_are_unlogged_and_their_loss_does_not_remove_the_question(
    lea: ChallengedLead,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'bank_cardsession'")
        assert cursor.fetchone() == ("u",)
    visit = CardSession.objects.get().pk
    CardSession.objects.all().delete()
    assert lea.client.get(f"/bank/card/{visit}").status_code == 404
    assert "Is this you?" in words(lea.client.get(lea.question))


def test_the_card_page_explains_each_test_card(lea: ChallengedLead) -> None:
    # This browser has already entered a card. With its cookie, the page would redirect it.
    lea.client.cookies.clear()
    page = words(lea.client.get(lea.bank_form)).replace("\xa0", " ")
    for card in CARDS.values():
        assert card.spaced in page and card.effect in page
