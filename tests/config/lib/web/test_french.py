"""French pages elide "de" and "que" before names."""

import pytest

from checkout.models import Checkout
from config.lib.web import french
from tests.hosted_page.browsers import words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.reading import plain


@pytest.mark.parametrize(
    ("text", "elided"),
    [
        ("la carte de Amélie", "la carte d’Amélie"),
        ("la carte de <bdi>Éloïse</bdi>", "la carte d’<bdi>Éloïse</bdi>"),
        ("Dès que Acme confirme", "Dès qu’Acme confirme"),
        ("la commande de Léa", "la commande de Léa"),
        ("la part de Hugo, de Yann", "la part de Hugo, de Yann"),
        ("code Amélie, guide Acme", "code Amélie, guide Acme"),
    ],
)
def test_words_before_a_name_are_elided(text: str, elided: str) -> None:
    assert french.elide(text) == elided


@pytest.mark.django_db
def test_a_french_page_says_dacme(order: Checkout) -> None:
    order.lead.name = "Amélie"  # type: ignore[union-attr]
    order.lead.save()  # type: ignore[union-attr]
    guest = Guest(order)
    page = plain(words(guest.client.get(guest.path, headers={"Accept-Language": "fr"})))
    assert "d’Amélie" in page and "de Amélie" not in page
