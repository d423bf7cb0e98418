"""Functions that read a field of a provider's answer. Each returns a safe value if the field is invalid."""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from payments.models import BalanceEntry, Operation
from payments.provider import Card, DisputeStatus, Verdict

OTHER = "other"  # in place of an invalid reason or brand
NIL_UUID = UUID(int=0)
MAX_AMOUNT = 2**63 - 1
# The reasons that only the service may set, because it acts on them.
OUR_REASONS = frozenset(
    (
        *("another_card", "challenge_expired", "given_up", "held_for_less"),
        *("given_up_by_operator", "new_key"),
        *("never_arrived", "order_ended", "same_card", "withdrawn"),
    )
)
_REASON = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_LAST4 = re.compile(r"[0-9]{4}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_ADDRESS = re.compile(r"[\x21-\x7e]{1,2048}+")  # possessive: a longer address fails without backtracking
_CARD_NUMBER = re.compile(r"\d(?:[ -]?\d){11,18}")


def without_card_numbers(text: str) -> str:
    """Return the text, with "[digits]" in place of each sequence of digits that might be a card number."""
    return _CARD_NUMBER.sub("[digits]", text)


def read_verdict(said: Any) -> Verdict | None:
    try:
        return Verdict(said) if isinstance(said, str) else None
    except ValueError:
        return None


def read_verdict_or_unknown(said: Any) -> Verdict:
    return read_verdict(said) or Verdict.UNKNOWN


def read_reference(said: Any) -> str:
    """Return the reference, or "" if it is invalid.

    It is not truncated, because it could then name another object.
    """
    return str(said) if _is_text(said, 255) else ""


def read_reason(said: Any) -> str:
    if not isinstance(said, str) or (said and not _REASON.fullmatch(said)):
        return OTHER if said else ""
    return OTHER if said in OUR_REASONS or _CARD_NUMBER.search(said) else said


def read_address(said: Any) -> str:
    """Return an absolute http(s) address, or "" for anything else."""
    if not isinstance(said, str) or not _ADDRESS.fullmatch(said):
        return ""
    try:
        parts = urlsplit(said)
        leads = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return ""
    return said if leads else ""


def read_card(said: Any) -> Card | None:
    if not isinstance(said, Card):
        return None
    return Card(_read_brand(said.brand), _read_last4(said.last4), _read_fingerprint(said.fingerprint))


def read_amount(said: Any) -> int | None:
    return said if type(said) is int and abs(said) <= MAX_AMOUNT else None


def read_amount_or_zero(said: Any) -> int:
    """Return the amount, or 0 if it is invalid. No operation has an amount of 0."""
    return read_amount(said) or 0


def is_true(said: Any) -> bool:
    return said is True


def read_unchanged(said: Any) -> Any:
    return said


def read_sequence(said: Any) -> Sequence[Any]:
    """Return a list or tuple unchanged, or an empty tuple for anything else. The members are not checked."""
    return said if isinstance(said, list | tuple) else ()


def is_not_false(said: Any) -> bool:
    """Return whether money moved. An invalid value counts as True, so that a person investigates it."""
    return said is not False


def read_uuid(said: Any) -> UUID:
    return said if isinstance(said, UUID) else NIL_UUID


def read_operation_kind(said: Any) -> str:
    """Return the kind of an operation, or "" for anything else."""
    return said if isinstance(said, str) and said in Operation.Kind.values else ""


def read_currency(said: Any) -> str:
    return said if isinstance(said, str) and _CURRENCY.fullmatch(said) else ""


def read_distinct_reference(said: Any) -> str:
    """Return the reference, or its digest if it cannot be stored. Different references stay different."""
    return read_reference(said) or hashlib.sha256(str(said).encode(errors="surrogatepass")).hexdigest()


def read_dispute_status(said: Any) -> DisputeStatus:
    """Return the status, or OPEN if it is invalid."""
    return said if isinstance(said, DisputeStatus) else DisputeStatus.OPEN


def read_entry_kind(said: Any) -> BalanceEntry.Kind:
    return said if isinstance(said, BalanceEntry.Kind) else BalanceEntry.Kind.OTHER


def read_account(said: Any) -> str:
    """Return a merchant's account at the provider, or "" if it is invalid."""
    return str(said) if _is_text(said, 64) else ""


def read_uuid_or_none(said: Any) -> UUID | None:
    return said if isinstance(said, UUID) else None


def read_moment(said: Any) -> datetime | None:
    """Return a time that has a time zone, or None for anything else."""
    return said if isinstance(said, datetime) and said.utcoffset() is not None else None


def read_message_id(said: Any) -> str:
    return without_card_numbers(said[:64]) if _is_text(said, 5000) else ""


def _read_brand(said: Any) -> str:
    """Return the first 20 characters of a brand, or OTHER if it is invalid.

    A brand with digits is invalid, because it might be the card's number.
    """
    if not isinstance(said, str) or not (said.isprintable() or not said) or any(map(str.isdigit, said)):
        return OTHER if said else ""
    return said[:20]


def _read_last4(said: Any) -> str:
    return said if isinstance(said, str) and _LAST4.fullmatch(said) else ""


def _read_fingerprint(said: Any) -> str:
    """Return the fingerprint, or its digest if it cannot be stored, so that cards can still be compared."""
    if not isinstance(said, str):
        return ""
    if _is_text(said, 64) and not _CARD_NUMBER.fullmatch(said):
        return said
    return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()


def _is_text(said: Any, length: int) -> bool:
    """Return whether a value is a string of at most `length` characters, all of them printable."""
    return isinstance(said, str) and len(said) <= length and (said.isprintable() or not said)
