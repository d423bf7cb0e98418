"""The facts about a discrepancy, as rows with labels for its page in the admin."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.contrib import admin
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html

from config.lib.admin import columns
from payments import money
from payments.models import Discrepancy

# Labels for the facts whose keys do not say what the value is.
LABELS = {
    "amount": "reported amount",
    "checkout": "order",
    "order": "lost order",
    "part": "part of the refund",
    "reference": "provider’s ID",
    "respond_by": "evidence until",
    "sms_messages": "texts",
    "status": "state at that time",
    "theirs": "the provider says",
    "to": "answer to",
    "unanswered": "no answer from",
}
AMOUNTS = ("amount", "part", "rest", "owed")
MODELS = {"checkout": "checkout.checkout", "payment": "payments.payment"}
IDS = ("order", "reference")


def fact_columns(row: Discrepancy) -> list[Callable[[Discrepancy], str]]:
    """Return a column for each fact of the discrepancy that has a value and is not shown elsewhere.

    Amounts are shown with the currency. The reason for the operation's refusal is not repeated, because the top of
    the page shows it.
    """
    hidden = {"currency"} | ({"reason"} if row.operation and row.operation.reason else set())
    return [_fact_column(key) for key, value in row.facts.items() if key not in hidden and value is not None]


@cache
def _fact_column(key: str) -> Callable[[Discrepancy], str]:
    def cell(row: Discrepancy) -> str:
        return _value_words(row, key, row.facts[key])

    cell.__name__ = f"fact_{key}"
    return admin.display(description=LABELS.get(key, key.replace("_", " ")))(cell)


def _value_words(row: Discrepancy, key: str, value: Any) -> str:
    """Return a fact in a readable form: an amount with its currency, a link to a row, a time, or sentences."""
    if key in MODELS:
        return columns.key_link(MODELS[key], value)
    if key in IDS:
        return format_html("<code>{}</code>", value)
    currency = _currency_of(row)
    if key in AMOUNTS and isinstance(value, int) and currency:
        return money.display(value, currency)
    at = parse_datetime(value) if key == "respond_by" else None
    if at is not None:
        return f"{at.day} {at:%b %Y %H:%M:%S}"
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return str(value).replace("_", " ") if key in ("status", "reason", "to") else str(value)


def _currency_of(row: Discrepancy) -> str:
    own = str(row.facts.get("currency") or "")
    return own or (row.operation.payment.currency if row.operation else "")
