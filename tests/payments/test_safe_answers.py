"""All answers of a provider can be stored in our tables, shown on our pages, and logged."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import example, given, settings

from payments import provider, safe_answers
from payments.models import Discrepancy, Operation
from payments.provider import Books, CardForm, Notification, Outcome, ProviderUnreachable, Verdict
from tests.payments import example_answers
from tests.payments.example_answers import NOTIFICATION, OF_CARD, OUTCOME, PAN, any_values, outcome_with

LoggedValue = Callable[[str, Any], str]


def line_about(field: str, caplog: pytest.LogCaptureFixture) -> str:
    """Return the value that the log shows for a field. Fail if there is another log line."""
    (record,) = caplog.records
    line: Any = record.msg
    expected = "card" if field in OF_CARD else field
    assert (line["event"], line["field"]) == ("provider said something strange", expected)
    return str(line["said"])


class TestTheLog:
    @pytest.fixture
    def logged_value(self, caplog: pytest.LogCaptureFixture) -> LoggedValue:
        def log_outcome(field: str, value: Any) -> str:
            caplog.clear()
            safe_answers.safe_outcome(Operation(kind="capture", amount=9000), outcome_with(field, value))
            return line_about(field, caplog)

        return log_outcome

    @pytest.mark.rule("doubt.bounded")
    def test_has_the_whole_value(self, logged_value: LoggedValue) -> None:
        assert logged_value("reference", "r" * 5000) == repr("r" * 5000)
        assert logged_value("reason", "\x00\ud800") == r"'\x00\ud800'"

    def test_is_bounded(self, logged_value: LoggedValue) -> None:
        assert len(logged_value("reference", "\x00" * 50_000)) == safe_answers.MAX_IN_LOG

    @pytest.mark.rule("doubt.bounded")
    @pytest.mark.parametrize("number", [PAN, "4242 4242 4242 4242", "x4242-4242-4242-4242x", "1" * 5000])
    @pytest.mark.parametrize("field", ["brand", "last4", "reason"])
    def test_has_no_number_of_a_card(self, logged_value: LoggedValue, field: str, number: str) -> None:
        line = logged_value(field, number)
        assert "[digits]" in line and "4242 4242" not in line and "42424242" not in line

    def test_is_empty_for_a_normal_answer(self, caplog: pytest.LogCaptureFixture) -> None:
        assert safe_answers.safe_outcome(Operation(kind="capture", amount=9000), OUTCOME) == OUTCOME
        assert caplog.records == []

    def test_accepts_a_value_without_a_representation(self, logged_value: LoggedValue) -> None:
        class Mute:
            def __repr__(self) -> str:
                raise ValueError

        assert logged_value("reference", Mute()) == "Mute"


@pytest.mark.django_db
class TestAnInvalidAnswer:
    @pytest.mark.parametrize(
        "answer",
        [
            *(None, 7, True, "succeeded", b"", [], {}, Ellipsis),
            *(
                outcome_with("verdict", verdict)
                for verdict in ("", "done", None, 1, ["succeeded"], b"failed")
            ),
            *(outcome_with("amount", amount) for amount in ("9000", "", True, 9000.0, [9000], b"1", 10**30)),
            replace(OUTCOME, verdict=Verdict.NEEDS_ACTION, action_url=""),
            replace(OUTCOME, verdict=Verdict.NEEDS_ACTION, action_url="javascript:alert(1)"),
        ],
        ids=repr,
    )
    def test_is_unknown_and_is_left_to_a_person(self, operation: Operation, answer: Any) -> None:
        outcome = safe_answers.safe_outcome(operation, answer)
        assert outcome.verdict == Verdict.UNKNOWN and outcome.amount is None
        assert outcome.reference == ("pi_3Nx" if isinstance(answer, Outcome) else "")
        found = Discrepancy.objects.get()
        assert (found.kind, found.operation, found.facts) == (
            "unreadable_answer",
            operation,
            {"to": "authorize"},
        )

    @pytest.mark.parametrize("kind", ["capture", "void", "refund"])
    def test_has_a_challenge_outside_an_authorization(self, operation: Operation, kind: str) -> None:
        operation.kind = kind
        outcome = safe_answers.safe_outcome(operation, replace(OUTCOME, verdict=Verdict.NEEDS_ACTION))
        assert outcome.verdict == Verdict.UNKNOWN

    def test_is_not_one_with_its_verdict_as_plain_text(self, operation: Operation) -> None:
        outcome = safe_answers.safe_outcome(operation, outcome_with("verdict", "succeeded"))
        assert outcome == OUTCOME and isinstance(outcome.verdict, Verdict)


@pytest.fixture
def operation(held: Any) -> Operation:
    return Operation.objects.select_related("payment").get(kind="authorize")


@pytest.mark.parametrize("field", ["id", "payment", "kind", "verdict", "operation"])
@given(value=any_values)
@example(value="\x00")
@example(value="\ud800")
@settings(max_examples=40)
def test_an_unreadable_notification_field_is_dropped_and_the_rest_kept(field: str, value: Any) -> None:
    checked, unchanged = safe_answers.safe_notifications(
        [replace(NOTIFICATION, **{field: value}), NOTIFICATION]
    )
    assert unchanged == NOTIFICATION == replace(checked, **{field: getattr(NOTIFICATION, field)})
    assert len(checked.id.encode()) <= 256 and checked.kind in ("", *Operation.Kind.values)
    assert isinstance(checked.payment, UUID) and isinstance(checked.verdict, Verdict)
    assert checked.operation is None or isinstance(checked.operation, UUID)


@given(value=any_values)
@settings(max_examples=40)
def test_any_value_counts_as_one_message(value: Any) -> None:
    (told,) = safe_answers.safe_notifications([value])
    assert told == Notification("", UUID(int=0))


# The parts of a provider's books. Each entry has an example of the part, a function that puts a part into the
# example books, and a function that returns the part of given books.
PARTS: dict[str, tuple[Any, Callable[[Any], Books], Callable[[Books], Any]]] = {
    "capture": (
        example_answers.CAPTURE,
        lambda part: replace(example_answers.BOOKS, capture=part),
        lambda books: books.capture,
    ),
    "refund": (
        example_answers.REFUND,
        lambda part: replace(example_answers.BOOKS, refunds=[part]),
        lambda books: books.refunds[0],
    ),
    "dispute": (
        example_answers.DISPUTE,
        lambda part: replace(example_answers.BOOKS, disputes=[part]),
        lambda books: books.disputes[0],
    ),
    "line": (
        example_answers.LINE,
        lambda part: replace(
            example_answers.BOOKS, disputes=[replace(example_answers.DISPUTE, lines=[part])]
        ),
        lambda books: books.disputes[0].lines[0],
    ),
}


@pytest.mark.rule("doubt.bounded")
class TestBooks:
    def test_that_are_valid_are_unchanged(self, caplog: pytest.LogCaptureFixture) -> None:
        assert safe_answers.safe_books(example_answers.BOOKS, now=example_answers.AT) == example_answers.BOOKS
        assert caplog.records == []

    @pytest.mark.parametrize(
        ("part", "field"), [(part, field.name) for part in PARTS for field in fields(PARTS[part][0])]
    )
    @given(value=any_values)
    @example(value="\x00")
    @example(value="\ud800")
    @example(value="x" * 5000)
    @settings(max_examples=20)
    def test_with_one_strange_field_keep_everything_else(self, part: str, field: str, value: Any) -> None:
        right, put, find = PARTS[part]
        books = safe_answers.safe_books(put(replace(right, **{field: value})), now=example_answers.AT)
        stored = find(books)
        assert replace(stored, **{field: getattr(right, field)}) == right
        text = getattr(stored, field)
        if isinstance(text, str):
            assert len(text) <= 255 and text.isprintable()
        if field == "reference":
            assert text, "it tells facts apart"

    @given(value=any_values)
    @settings(max_examples=40)
    def test_of_any_type_can_be_read(self, value: Any) -> None:
        assert isinstance(safe_answers.safe_books(value, now=example_answers.AT), Books)
        for part in ("is_held", "capture", "refunds", "disputes"):
            books = safe_answers.safe_books(
                replace(example_answers.BOOKS, **{part: value}), now=example_answers.AT
            )
            assert replace(books, **{part: getattr(example_answers.BOOKS, part)}) == example_answers.BOOKS

    def test_with_too_many_entries_are_cut(self) -> None:
        many = replace(example_answers.DISPUTE, lines=[example_answers.LINE] * 1000)
        books = safe_answers.safe_books(
            replace(example_answers.BOOKS, refunds=[example_answers.REFUND] * 1000, disputes=[many] * 1000),
            now=example_answers.AT,
        )
        assert len(books.refunds) == safe_answers.MAX_REFUNDS
        assert len(books.disputes) == safe_answers.MAX_DISPUTES
        assert len(books.disputes[0].lines) == safe_answers.MAX_LINES


class TestTheCardPage:
    FORM = CardForm(uuid4(), "https://pay.example/paid", 4200, "GBP")

    @pytest.mark.parametrize(
        "answer",
        [None, 7, b"https://x", "", "javascript:alert(1)", "/card", "https://x\n", "https://x/" + "a" * 5000],
    )
    def test_with_an_invalid_address_is_unreachable(
        self, monkeypatch: pytest.MonkeyPatch, answer: Any
    ) -> None:
        monkeypatch.setattr(type(provider.current_provider()), "open_card_form", lambda *_: answer)
        with pytest.raises(ProviderUnreachable):
            safe_answers.card_page(self.FORM)

    def test_that_raises_is_unreachable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(provider.current_provider()), "open_card_form", lambda *_: [].pop())
        with pytest.raises(ProviderUnreachable):
            safe_answers.card_page(self.FORM)

    def test_has_the_providers_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            type(provider.current_provider()), "open_card_form", lambda *_: "https://bank.example/card/1"
        )
        assert safe_answers.card_page(self.FORM) == "https://bank.example/card/1"
