"""Examples of a provider's answers. A test can replace the value of one field."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from payments.provider import (
    Books,
    CaptureRecord,
    Card,
    DisputeLine,
    DisputeRecord,
    DisputeStatus,
    Notification,
    Outcome,
    RefundRecord,
    Verdict,
)

CARD = Card("Visa", "4242", "fingerprint of the card")
OUTCOME = Outcome(
    Verdict.SUCCEEDED, "pi_3Nx", "do_not_honor", "https://bank.example/ask?x=1", CARD, 9000, is_vouched=True
)
NOTIFICATION = Notification("evt_1", uuid4(), "capture", Verdict.SUCCEEDED, uuid4())
AT = datetime(2026, 11, 3, 12, tzinfo=UTC)
CAPTURE = CaptureRecord("ch_1", 9000, "GBP", AT)
REFUND = RefundRecord(
    "re_1",
    4000,
    "GBP",
    Verdict.FAILED,
    AT,
    "expired_or_canceled_card",
    has_returned=True,
    operation=uuid4(),
    refund=uuid4(),
    share=uuid4(),
)
LINE = DisputeLine("txn_1", is_back=True, at=AT, amount=9000)
DISPUTE = DisputeRecord("dp_1", 9000, "GBP", "fraudulent", DisputeStatus.LOST, AT, AT, (LINE,), "appeal_lost")
BOOKS = Books(is_held=True, capture=CAPTURE, refunds=(REFUND,), disputes=(DISPUTE,))
PAN = "4242424242424242"
strings = st.text(st.characters(codec=None), max_size=40) | st.builds(
    lambda part, count: (part * 5000)[:count],
    st.text(st.characters(codec=None), min_size=1, max_size=3),
    st.integers(0, 5000),
)
any_values = st.one_of(
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


def with_field(outcome: Outcome, field: str, value: Any) -> Outcome:
    if field not in OF_CARD:
        return replace(outcome, **{field: value})
    assert outcome.card is not None
    return replace(outcome, card=replace(outcome.card, **{field: value}))


def outcome_with(field: str, value: Any) -> Outcome:
    return with_field(OUTCOME, field, value)


def field_of(outcome: Outcome, field: str) -> Any:
    return getattr(outcome.card if field in OF_CARD else outcome, field)
