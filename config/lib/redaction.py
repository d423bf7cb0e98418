"""The last step before a log line is written: what must never be read there is blanked."""

import re
from collections.abc import MutableMapping
from typing import Any

_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+|(?i:bearer)\s+\S+")
_CARD = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
_PHONE = re.compile(r"\+\d{8,15}\b")


def redact(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return the line with secrets, tokens, card numbers and phone numbers blanked."""
    for key, value in line.items():
        if isinstance(value, str):
            line[key] = blank(value)
    return line


def blank(text: str) -> str:
    text = _SECRET.sub("[secret]", text)
    text = _CARD.sub(lambda found: "[card]" if _passes_luhn(found.group()) else found.group(), text)
    return _PHONE.sub("[phone]", text)


def _passes_luhn(text: str) -> bool:
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
