"""Redaction of secrets, card numbers and phone numbers in log lines. It is the last step before the output.

Every regular expression here takes linear time, because a log line can contain text that a client has sent.
"""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

# Paths that are followed by a secret. Anyone who has such an address can pay, join or set a password. In all
# other paths, only the parts that look random are blanked.
SECRET_PATHS = (
    "pay/share",
    "pay/g",
    "pay/offers",
    "pay/stop",
    "join",
    "accounts/password/reset/key",
    "bank/card",
    "bank/challenge",
)
_SLASH = r"(?:/|%2[Ff])"
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![\w-])"
_KNOWN = "|".join(path.replace("/", _SLASH) for path in SECRET_PATHS)
_KNOWN_PATH = re.compile(rf"((?:(?<![\w-])|(?<=%2[Ff]))(?:{_KNOWN}){_SLASH})[^/\s?#&%'\"<>)\]]+")
_RANDOM_PART = re.compile(
    rf"((?:/|%2[Ff]))(?!{_UUID})(?=[A-Za-z_:=-]*[0-9])(?=[0-9_:=-]*[A-Za-z])[A-Za-z0-9_:=-]{{20,}}(?![\w.])"
)
_QUERY = re.compile(r"(?<=[\w/-])\?(?=[\w.%-]+=)[^\s'\"<>]+")
_NAMED_SECRET = re.compile(
    r"(\b\w{0,40}(?:token|secret|password|cookie|authorization|sessionid)\w{0,40}['\"]?\s?[:=]\s?['\"]?)"
    r"[^\s'\",;&}]+",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"whsec_[A-Za-z0-9+/=]+|\b[sr]k_(?:live|test)_\w+|\bpi_[A-Za-z0-9]{1,64}_secret_\w+|(?i:bearer)\s\S+"
)
_CARD = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
# Values that the other expressions cannot match: words, methods, our ids, times, versions. Most values in log
# lines are like this, so this check saves time.
_HARMLESS = re.compile(
    rf"[a-z. ]{{0,64}}|[A-Z]{{1,7}}|{_UUID}|req_[0-9a-f]{{12}}7[0-9a-f]{{19}}|[0-9-]{{10}}T[0-9:.]{{8,15}}Z"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){2}"
)
# The keys whose values are not redacted. A route, such as `pay/share/<slug:token>`, is our own text and does
# not contain text from a caller.
_UNREDACTED_FIELDS = {"route"}
_PHONE = re.compile(r"\+\d{8,15}\b")


def redact(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank the secrets, secret addresses, tokens, card numbers and phone numbers in a log line.

    Rule secret.logs.
    """
    for key, value in line.items():
        if key not in _UNREDACTED_FIELDS:
            line[key] = _redact_value(value)
    return line


def blank_secrets(text: str) -> str:
    """Blank everything in a text that a log must not contain."""
    text = _SECRET.sub("[secret]", text)
    text = _NAMED_SECRET.sub(r"\1[secret]", text)
    text = _QUERY.sub("?[query]", _blank_paths(text))
    text = _CARD.sub(lambda found: "[card]" if _passes_luhn(found.group()) else found.group(), text)
    return _PHONE.sub("[phone]", text)


def is_secret_path(path: str) -> bool:
    """Return whether a path contains a secret, so that anyone who knows the path can use it."""
    return _blank_paths(path) != path


def _blank_paths(text: str) -> str:
    return _RANDOM_PART.sub(r"\1[secret]", _KNOWN_PATH.sub(r"\1[secret]", text))


def _redact_value(value: Any) -> Any:
    match value:
        case bool() | int() | float() | None:
            return value
        case str():
            return value if _HARMLESS.fullmatch(value) else blank_secrets(value)
        case Mapping():
            return {key: _redact_value(kept) for key, kept in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_redact_value(kept) for kept in value]
        case _:
            return blank_secrets(str(value))


def _passes_luhn(text: str) -> bool:
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
