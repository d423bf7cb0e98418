"""The fields that are stored from a provider's answer fit our columns and contain no confidential data."""

from typing import Any

import pytest
from django.db import models
from hypothesis import example, given, settings

from payments import safe_answers
from payments.models import Operation, Payment
from payments.provider import Verdict
from tests.payments.example_answers import OUTCOME, PAN, any_values, field_of, outcome_with, with_field

COLUMNS: dict[str, tuple[type[models.Model], str]] = {
    "reference": (Operation, "reference"),
    "reason": (Operation, "reason"),
    "action_url": (Operation, "action_url"),
    "brand": (Payment, "card_brand"),
    "last4": (Payment, "card_last4"),
    "fingerprint": (Payment, "card_fingerprint"),
}


@pytest.mark.rule("doubt.bounded")
@pytest.mark.parametrize("field", COLUMNS)
@given(value=any_values)
@example(value="x" * 5000)
@example(value="\x00")
@example(value="\ud800")
@example(value="\x1b[31m\u202e")
@settings(max_examples=60)
def test_every_text_is_cut_to_its_column_and_other_fields_are_kept(field: str, value: Any) -> None:
    outcome = safe_answers.safe_outcome(Operation(kind="capture", amount=9000), outcome_with(field, value))
    text = field_of(outcome, field)
    model, column = COLUMNS[field]
    field_of_model: Any = model._meta.get_field(column)
    assert isinstance(text, str) and len(text) <= field_of_model.max_length
    assert text.encode() is not None and (text.isprintable() or text == "")
    assert with_field(outcome, field, "") == with_field(OUTCOME, field, "")


@pytest.mark.parametrize(
    ("field", "value", "is_kept_as"),
    [
        ("reference", "r" * 255, "r" * 255),
        ("reference", "r" * 256, ""),
        ("reference", "8835511210681324", "8835511210681324"),
        ("reason", "expired_authorization", "expired_authorization"),
        ("reason", "05", "05"),
        ("reason", "r" * 41, "other"),
        ("reason", "Call your bank!", "other"),
        ("reason", "another_card", "other"),
        ("reason", PAN, "other"),
        ("reason", None, ""),
        ("brand", "Carte Bancaire", "Carte Bancaire"),
        ("brand", "A card for those who travel", "A card for those who"),
        ("brand", PAN, "other"),
        ("last4", PAN, ""),
        ("last4", "424", ""),
        ("last4", "٤٢٤٢", ""),
        ("fingerprint", "f" * 64, "f" * 64),
        ("action_url", "javascript:alert(1)", ""),
        ("action_url", "https://", ""),
        ("action_url", "//bank.example/ask", ""),
        ("action_url", "https://bank.example:99999/", ""),
        ("action_url", "https://[bank/", ""),
        ("action_url", "https://bank.example/a b", ""),
        ("action_url", "https://bank.example/" + "a" * 2027, "https://bank.example/" + "a" * 2027),
        ("action_url", "https://bank.example/" + "a" * 2028, ""),
    ],
)
def test_each_text_is_stored_in_its_cleaned_form(field: str, value: Any, is_kept_as: str) -> None:
    outcome = safe_answers.safe_outcome(Operation(kind="capture", amount=9000), outcome_with(field, value))
    assert (outcome.verdict, field_of(outcome, field)) == (Verdict.SUCCEEDED, is_kept_as)


@pytest.mark.parametrize("said", ["f" * 65, "f\x00", "f\ud800", PAN])
def test_a_fingerprint_that_cannot_be_stored_still_distinguishes_cards(said: str) -> None:
    operation = Operation(kind="authorize", amount=9000)
    one, same, other = (
        field_of(safe_answers.safe_outcome(operation, outcome_with("fingerprint", text)), "fingerprint")
        for text in (said, said, f"{said}.")
    )
    assert one == same != other and said not in one
