"""The texts of a cell in the table of pages."""

import pytest
from django.utils.safestring import mark_safe

from hosted_page.status.cells import fill

pytestmark = pytest.mark.rule("page.viewer")


def test_values_are_escaped_and_markup_stays() -> None:
    assert fill("<strong>{shop}</strong>", {"shop": "A & <b>"}) == "<strong>A &amp; &lt;b&gt;</strong>"
    assert fill("{why}", {"why": mark_safe("<b>late</b>")}) == "<b>late</b>"


def test_sentences_become_one_paragraph() -> None:
    assert fill(("First {name}.", "Second."), {"name": "Lea"}) == "First Lea. Second."
