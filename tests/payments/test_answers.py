"""What a provider says fits our tables, our pages and our log, whatever it is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import models
from hypothesis import example, given, settings
from hypothesis import strategies as st

from payments import answers, provider
from payments.models import Discrepancy, Operation, Payment
from payments.provider import Card, CardForm, Notification, Outcome, ProviderUnreachable, Record, Verdict

CARD = Card("Visa", "4242", "fingerprint of the card")
SAID = Outcome(
    Verdict.SUCCEEDED, "pi_3Nx", "do_not_honor", "https://bank.example/ask?x=1", CARD, 9000, is_vouched=True
)
RECORD = Record(uuid4(), "capture", Verdict.SUCCEEDED, uuid4(), uuid4(), 9000, "GBP")
PAN = "4242424242424242"
strings = st.text(st.characters(codec=None), max_size=40) | st.builds(
    lambda part, count: (part * 5000)[:count],
    st.text(st.characters(codec=None), min_size=1, max_size=3),
    st.integers(0, 5000),
)
things = st.one_of(
    strings,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.binary(max_size=20),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.just(object()),
)
OF_CARD = ("brand", "last4", "fingerprint")
COLUMNS: dict[str, tuple[type[models.Model], str]] = {
    "reference": (Operation, "reference"),
    "reason": (Operation, "reason"),
    "action_url": (Operation, "action_url"),
    "brand": (Payment, "card_brand"),
    "last4": (Payment, "card_last4"),
    "fingerprint": (Payment, "card_fingerprint"),
}


def with_field(outcome: Outcome, field: str, value: Any) -> Outcome:
    if field not in OF_CARD:
        return replace(outcome, **{field: value})
    assert outcome.card is not None
    return replace(outcome, card=replace(outcome.card, **{field: value}))


def changed(field: str, value: Any) -> Outcome:
    return with_field(SAID, field, value)


def kept(outcome: Outcome, field: str) -> Any:
    return getattr(outcome.card if field in OF_CARD else outcome, field)


@pytest.mark.rule("doubt.bounded")
@pytest.mark.parametrize("field", COLUMNS)
@given(value=things)
@example(value="x" * 5000)
@example(value="\x00")
@example(value="\ud800")
@example(value="\x1b[31m\u202e")
@settings(max_examples=60, deadline=None, database=None)
def test_every_text_fits_its_column_and_the_rest_of_the_answer_stands(field: str, value: Any) -> None:
    outcome = answers.outcome(Operation(kind="capture", amount=9000), changed(field, value))
    text = kept(outcome, field)
    model, column = COLUMNS[field]
    field_of_model: Any = model._meta.get_field(column)
    assert isinstance(text, str) and len(text) <= field_of_model.max_length
    assert text.encode() is not None and (text.isprintable() or text == "")
    assert with_field(outcome, field, "") == with_field(SAID, field, "")


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
def test_what_is_kept_of_it(field: str, value: Any, is_kept_as: str) -> None:
    outcome = answers.outcome(Operation(kind="capture", amount=9000), changed(field, value))
    assert (outcome.verdict, kept(outcome, field)) == (Verdict.SUCCEEDED, is_kept_as)


@pytest.mark.parametrize("said", ["f" * 65, "f\x00", "f\ud800", PAN])
def test_a_fingerprint_that_cannot_be_kept_still_tells_cards_apart(said: str) -> None:
    operation = Operation(kind="authorize", amount=9000)
    one, same, other = (
        kept(answers.outcome(operation, changed("fingerprint", text)), "fingerprint")
        for text in (said, said, f"{said}.")
    )
    assert one == same != other and said not in one


Said = Callable[[str, Any], str]


def line_about(field: str, caplog: pytest.LogCaptureFixture) -> str:
    """What the one line of the log that tells of a field has of it."""
    (record,) = caplog.records
    line: Any = record.msg
    expected = "card" if field in OF_CARD else field
    assert (line["event"], line["field"]) == ("provider said something strange", expected)
    return str(line["said"])


class TestTheLog:
    @pytest.fixture
    def said(self, caplog: pytest.LogCaptureFixture) -> Said:
        def told(field: str, value: Any) -> str:
            caplog.clear()
            answers.outcome(Operation(kind="capture", amount=9000), changed(field, value))
            return line_about(field, caplog)

        return told

    @pytest.mark.rule("doubt.bounded")
    def test_has_it_whole(self, said: Said) -> None:
        assert said("reference", "r" * 5000) == repr("r" * 5000)
        assert said("reason", "\x00\ud800") == r"'\x00\ud800'"

    def test_is_bounded(self, said: Said) -> None:
        assert len(said("reference", "\x00" * 50_000)) == answers.MAX_IN_LOG

    @pytest.mark.rule("doubt.bounded")
    @pytest.mark.parametrize("number", [PAN, "4242 4242 4242 4242", "x4242-4242-4242-4242x", "1" * 5000])
    @pytest.mark.parametrize("field", ["brand", "last4", "reason"])
    def test_has_no_number_of_a_card(self, said: Said, field: str, number: str) -> None:
        line = said(field, number)
        assert "[digits]" in line and "4242 4242" not in line and "42424242" not in line

    def test_says_nothing_where_nothing_is_strange(self, caplog: pytest.LogCaptureFixture) -> None:
        assert answers.outcome(Operation(kind="capture", amount=9000), SAID) == SAID
        assert caplog.records == []

    def test_survives_what_cannot_even_be_shown(self, said: Said) -> None:
        class Mute:
            def __repr__(self) -> str:
                raise ValueError

        assert said("reference", Mute()) == "Mute"


@pytest.mark.django_db
class TestAnAnswerWithoutSense:
    @pytest.mark.parametrize(
        "said",
        [
            *(None, 7, True, "succeeded", b"", [], {}, Ellipsis),
            *(changed("verdict", verdict) for verdict in ("", "done", None, 1, ["succeeded"], b"failed")),
            *(changed("amount", amount) for amount in ("9000", "", True, 9000.0, [9000], b"1", 10**30)),
            replace(SAID, verdict=Verdict.NEEDS_ACTION, action_url=""),
            replace(SAID, verdict=Verdict.NEEDS_ACTION, action_url="javascript:alert(1)"),
        ],
        ids=repr,
    )
    def test_is_unknown_and_left_for_a_person(self, operation: Operation, said: Any) -> None:
        outcome = answers.outcome(operation, said)
        assert outcome.verdict == Verdict.UNKNOWN and outcome.amount is None
        assert outcome.reference == ("pi_3Nx" if isinstance(said, Outcome) else "")
        found = Discrepancy.objects.get()
        assert (found.kind, found.operation, found.facts) == (
            "unreadable_answer",
            operation,
            {"to": "authorize"},
        )

    @pytest.mark.parametrize("kind", ["capture", "void", "refund"])
    def test_asks_the_payer_about_anything_but_a_payment(self, operation: Operation, kind: str) -> None:
        operation.kind = kind
        outcome = answers.outcome(operation, replace(SAID, verdict=Verdict.NEEDS_ACTION))
        assert outcome.verdict == Verdict.UNKNOWN

    def test_is_not_one_whose_verdict_is_told_as_a_plain_text(self, operation: Operation) -> None:
        outcome = answers.outcome(operation, changed("verdict", "succeeded"))
        assert outcome == SAID and isinstance(outcome.verdict, Verdict)


@pytest.fixture
def operation(held: Any) -> Operation:
    return Operation.objects.select_related("payment").get(kind="authorize")


@pytest.mark.parametrize("field", ["key", "kind", "verdict", "payment", "account", "amount", "currency"])
@given(value=things)
@example(value="\x00")
@example(value="\ud800")
@settings(max_examples=40, deadline=None, database=None)
def test_a_record_equals_nothing_of_ours_where_it_cannot_be_read(field: str, value: Any) -> None:
    record = answers.record(replace(RECORD, **{field: value}))
    assert type(getattr(record, field)) is type(getattr(RECORD, field))
    others = {name for name in answers.RECORD if name != field}
    assert {name: getattr(record, name) for name in others} == {
        name: getattr(RECORD, name) for name in others
    }


@given(value=things)
@settings(max_examples=40, deadline=None, database=None)
def test_a_message_is_one_whatever_it_is(value: Any) -> None:
    for said in (value, Notification(value, RECORD), Notification("n-1", value)):
        message = answers.notification(said)
        assert isinstance(message.record, Record) and len(message.id.encode()) <= 256
    assert list(answers.records([value, RECORD]))[1] == RECORD


class TestTheCardPage:
    FORM = CardForm(uuid4(), "https://pay.example/paid")

    @pytest.mark.parametrize(
        "said",
        [None, 7, b"https://x", "", "javascript:alert(1)", "/card", "https://x\n", "https://x/" + "a" * 5000],
    )
    def test_that_leads_nowhere_is_no_page(self, monkeypatch: pytest.MonkeyPatch, said: Any) -> None:
        monkeypatch.setattr(type(provider.current()), "open_card_form", lambda *_: said)
        with pytest.raises(ProviderUnreachable):
            answers.card_page(self.FORM)

    def test_that_breaks_is_no_page(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(provider.current()), "open_card_form", lambda *_: [].pop())
        with pytest.raises(ProviderUnreachable):
            answers.card_page(self.FORM)

    def test_is_where_the_provider_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            type(provider.current()), "open_card_form", lambda *_: "https://bank.example/card/1"
        )
        assert answers.card_page(self.FORM) == "https://bank.example/card/1"
