"""Checks for all refused requests: the response has the error envelope (rule api.error), and no row changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from checkout.models import Bill, Checkout, Refund
from payments.models import Booking, Dispute, Movement, Operation, Payment, Posting
from webhooks.models import Delivery, Event, SigningSecret, Subscription

BOOKS = (
    Checkout,
    Bill,
    Payment,
    Operation,
    Movement,
    Dispute,
    Booking,
    Posting,
    Refund,
    Event,
    Delivery,
    Subscription,
    SigningSecret,
)
ENVELOPE = {"code", "message", "param", "details", "request_id", "doc_url"}


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


@contextmanager
def nothing_moves() -> Iterator[None]:
    """Fail if the block changes a row of the money or event tables.

    One change is allowed: the time at which a payment was last read from the provider.
    """
    before = _rows()
    yield
    assert _rows() == before


def _rows() -> dict[str, str | None]:
    """Map each money and event table to its rows as JSON, without the column `synced_at`."""
    tables = [model._meta.db_table for model in BOOKS]
    selects = [
        f"SELECT '{table}', jsonb_agg(to_jsonb(t) - 'synced_at' ORDER BY t)::text FROM {table} t"
        for table in tables
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(selects))
        return dict(cursor.fetchall())


def refused(answer: Any, status: int, code: str, *params: str | None) -> dict[str, Any]:
    """Check the status and the whole error envelope. Return the error.

    The error's details must name each of `params`, and the error's `param` must be the first of them.
    """
    seen = answer.request["PATH_INFO"][-80:], answer.content[:500]
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/json"), seen
    body = answer.json()
    assert list(body) == ["error"] and set(body["error"]) == ENVELOPE
    error: dict[str, Any] = body["error"]
    assert error["code"] == code, error
    assert error["request_id"] == answer["X-Request-Id"] != ""
    assert error["doc_url"].endswith(f"#error-{code}") and error["message"]
    assert answer["Cache-Control"] == "no-store"
    named = [row.get("param") for row in error["details"]]
    assert error["param"] == (named[0] if named else None)
    assert set(params) <= set(named), error
    if code == "validation_failed":
        assert error["message"] == _in_words(*error["details"])
    return error


def _in_words(first: dict[str, Any], *more: dict[str, Any]) -> str:
    """Return the expected `message`: the first detail, and the number of other details.

    The message contains the first detail so that a log is useful even if it stores only messages.
    """
    named = f"{first['param']}: " if first["param"] else ""
    return f"{named}{first['message']}" + (f" {len(more)} more in details." if more else "")


def without(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields except those with the value MISSING."""
    return {name: value for name, value in fields.items() if value is not MISSING}
