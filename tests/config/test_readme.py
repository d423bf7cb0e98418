from io import StringIO
from pathlib import Path

from django.core.management import call_command

from payments.providers.sandbox.cards import CARDS

README = Path("README.md").read_text()


def test_the_state_picture_is_drawn_from_the_table() -> None:
    drawn = StringIO()
    call_command("draw_states", stdout=drawn)
    assert drawn.getvalue() in README


def test_every_test_card_is_listed() -> None:
    assert [card.spaced for card in CARDS.values() if card.spaced not in README] == []


def test_every_setting_is_listed() -> None:
    read = Path("config/settings.py").read_text().split("env.")[1:]
    names = {
        part.split('"')[1]
        for part in read
        if part.split("(")[0] in {"text", "words", "integer", "boolean", "choice", "database"}
    }
    assert names and {name for name in names if f"`{name}`" not in README} == set()
