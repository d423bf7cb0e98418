"""French pages elide "de" and "que" before names, and the catalogue has no such word before a name."""

import re

import pytest

from checkout.models import Checkout
from config.lib.web import french
from tests.hosted_page.browsers import words
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.reading import plain
from tests.house import messages

# A word that loses its vowel before a name that begins with a vowel, and the name.
ELIDED = re.compile(
    r"\b([Dd]e|[Qq]ue|[Ll][ae]) (<\w[^>]*>)*(%\(|\{)(item|merchant|names?|place|shop|title)\b"
)


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


def test_no_translation_needs_an_elision() -> None:
    """Text messages are not elided, and a page does not elide before a lower-case letter or an H."""
    texts = [form for message in messages.read("fr") if message.id for form in messages.forms(message)]
    assert [text for text in texts if ELIDED.search(text)] == []


@pytest.mark.parametrize(
    "needs", ["la carte de {name}", "Code QR de <bdi>%(name)s</bdi>", "dès que {shop} paie"]
)
def test_the_check_finds_a_word_before_a_name(needs: str) -> None:
    assert ELIDED.search(needs)


@pytest.mark.django_db
def test_a_french_page_is_right_for_a_name_with_a_vowel(order: Checkout) -> None:
    order.lead.name = "Amélie"  # type: ignore[union-attr]
    order.lead.save()  # type: ignore[union-attr]
    guest = Guest(order)
    page = plain(words(guest.client.get(guest.path, headers={"Accept-Language": "fr"})))
    assert "Amélie récupère votre part" in page and "de Amélie" not in page
