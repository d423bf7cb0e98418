"""Functions that read a field of a provider's answer. If the field is invalid, they return a safe value."""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from payments.models import BalanceEntry, Operation
from payments.provider import Card, DisputeStatus, Verdict

OTHER = "other"  # replaces an invalid reason or brand
NIL_UUID = UUID(int=0)
MAX_AMOUNT = 2**63 - 1
# The reasons that only the service may set, because it acts on them.
OUR_REASONS = frozenset(
    (
        *("another_card", "challenge_expired", "given_up", "held_for_less"),
        *("given_up_by_operator", "new_key"),
        *("never_arrived", "not_taken", "order_ended", "pledge_ended"),
        *("same_card", "shop_stopped", "withdrawn"),
    )
)
_REASON = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_LAST4 = re.compile(r"[0-9]{4}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_ADDRESS = re.compile(r"[\x21-\x7e]{1,2048}+")  # possessive: a longer address fails without backtracking
_CARD_NUMBER = re.compile(r"\d(?:[ -]?\d){11,18}")


def without_card_numbers(text: str) -> str:
    """Return the text. Each sequence of digits that might be a card number is replaced by "[digits]"."""
    return _CARD_NUMBER.sub("[digits]", text)


def read_verdict(value: Any) -> Verdict | None:
    try:
        return Verdict(value) if isinstance(value, str) else None
    except ValueError:
        return None


def read_verdict_or_unknown(value: Any) -> Verdict:
    return read_verdict(value) or Verdict.UNKNOWN


def read_reference(value: Any) -> str:
    """Return the reference, or "" if it is invalid.

    It is not truncated, because the truncated text could be the reference of another object.
    """
    return str(value) if _is_text(value, 255) else ""


def read_reason(value: Any) -> str:
    if not isinstance(value, str) or (value and not _REASON.fullmatch(value)):
        return OTHER if value else ""
    return OTHER if value in OUR_REASONS or _CARD_NUMBER.search(value) else value


def read_address(value: Any) -> str:
    """Return an absolute http(s) address, or "" if the value is not one."""
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        return ""
    try:
        parts = urlsplit(value)
        leads = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    return value if leads else ""


def read_card(value: Any) -> Card | None:
    if not isinstance(value, Card):
        return None
    return Card(_read_brand(value.brand), _read_last4(value.last4), _read_fingerprint(value.fingerprint))


def read_amount(value: Any) -> int | None:
    return value if type(value) is int and abs(value) <= MAX_AMOUNT else None


def read_positive_amount(value: Any) -> int | None:
    """Return the amount, or None if it is not a positive amount."""
    amount = read_amount(value)
    return amount if amount is not None and amount > 0 else None


def read_amount_or_zero(value: Any) -> int:
    """Return the amount, or 0 if it is invalid. Operations never have an amount of 0."""
    return read_amount(value) or 0


def is_true(value: Any) -> bool:
    return value is True


def read_unchanged(value: Any) -> Any:
    return value


def read_sequence(value: Any) -> Sequence[Any]:
    """Return a list or tuple unchanged, or an empty tuple for any other value. The members are not checked."""
    return value if isinstance(value, list | tuple) else ()


def is_not_false(value: Any) -> bool:
    """Return whether money was moved. An invalid value counts as True, so that a person investigates it."""
    return value is not False


def read_uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else NIL_UUID


def read_operation_kind(value: Any) -> str:
    """Return the kind of an operation, or "" if the value is not a kind."""
    return value if isinstance(value, str) and value in Operation.Kind.values else ""


def read_currency(value: Any) -> str:
    return value if isinstance(value, str) and _CURRENCY.fullmatch(value) else ""


def read_distinct_reference(value: Any) -> str:
    """Return the reference. If it cannot be stored, return its digest, so that different references stay different."""
    return read_reference(value) or hashlib.sha256(str(value).encode(errors="surrogatepass")).hexdigest()


def read_dispute_status(value: Any) -> DisputeStatus:
    """Return the status, or OPEN if it is invalid."""
    return value if isinstance(value, DisputeStatus) else DisputeStatus.OPEN


def read_entry_kind(value: Any) -> BalanceEntry.Kind:
    return value if isinstance(value, BalanceEntry.Kind) else BalanceEntry.Kind.OTHER


def read_account(value: Any) -> str:
    """Return a merchant's account at the provider, or "" if it is invalid."""
    return str(value) if _is_text(value, 64) else ""


def read_uuid_or_none(value: Any) -> UUID | None:
    return value if isinstance(value, UUID) else None


def read_moment(value: Any) -> datetime | None:
    """Return a time that has a time zone, or None for any other value."""
    return value if isinstance(value, datetime) and value.utcoffset() is not None else None


def read_message_id(value: Any) -> str:
    return without_card_numbers(value[:64]) if _is_text(value, 5000) else ""


def _read_brand(value: Any) -> str:
    """Return the first 20 characters of a card brand, or OTHER if it is invalid.

    A brand that contains digits is invalid, because it might be the card number.
    """
    if not isinstance(value, str) or not (value.isprintable() or not value) or any(map(str.isdigit, value)):
        return OTHER if value else ""
    return value[:20]


def _read_last4(value: Any) -> str:
    return value if isinstance(value, str) and _LAST4.fullmatch(value) else ""


def _read_fingerprint(value: Any) -> str:
    """Return the fingerprint. If it cannot be stored, return its digest, so that cards can still be compared."""
    if not isinstance(value, str):
        return ""
    if _is_text(value, 64) and not _CARD_NUMBER.fullmatch(value):
        return value
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()


def _is_text(value: Any, length: int) -> bool:
    """Return whether a value is a string of at most `length` printable characters."""
    return isinstance(value, str) and len(value) <= length and (value.isprintable() or not value)
