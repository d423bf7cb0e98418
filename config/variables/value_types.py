"""The types of environment variables. A type says which texts are valid, and turns a text into a value."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import phonenumbers
from cryptography.fernet import Fernet
from psycopg import ProgrammingError, conninfo

T = TypeVar("T")


@dataclass(frozen=True)
class ValueType(Generic[T]):
    """A type of variable. `words` completes the sentence "NAME must be …".

    `parse` turns a text that is not empty into a value. It raises ValueError if the text is invalid.
    """

    words: str
    parse: Callable[[str], T]


def whole(least: int, most: int) -> ValueType[int]:
    """Return the type of whole numbers from `least` to `most`, both included."""

    def parse(raw: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,12}", raw) or not least <= int(raw) <= most:
            raise ValueError
        return int(raw)

    return ValueType(f"a whole number from {least} to {most}", parse)


def matching(pattern: str, words: str) -> ValueType[str]:
    """Return the type of texts that match a regular expression completely."""

    def parse(raw: str) -> str:
        if not re.fullmatch(pattern, raw, re.ASCII):
            raise ValueError
        return raw

    return ValueType(words, parse)


def one_of(*choices: str) -> ValueType[str]:
    return matching("|".join(map(re.escape, choices)), f"one of {', '.join(sorted(choices))}")


def listed(pattern: str, words: str) -> ValueType[list[str]]:
    """Return the type of comma-separated texts, each of which matches a regular expression completely."""

    def parse(raw: str) -> list[str]:
        parts = split(raw)
        if not parts or not all(re.fullmatch(pattern, part, re.ASCII) for part in parts):
            raise ValueError
        return parts

    return ValueType(f"{words}, comma-separated", parse)


def url(*schemes: str, path: str = "[^?#]*") -> ValueType[str]:
    """Return the type of URLs with one of these schemes. The value has no slash at its end."""

    def parse(raw: str) -> str:
        parts = urlsplit(raw)
        port = parts.port  # raises ValueError for an invalid port
        if parts.scheme not in schemes or not parts.hostname or port == 0:
            raise ValueError
        if parts.query or parts.fragment or not re.fullmatch(path, parts.path):
            raise ValueError
        return raw.rstrip("/")

    return ValueType(f"an address such as {schemes[-1]}://host.example", parse)


def split(raw: str) -> list[str]:
    """Return the comma-separated parts of a text, without empty ones."""
    return [part.strip() for part in raw.split(",") if part.strip()]


def _flag(raw: str) -> bool:
    if raw.lower() not in {"true", "false", "1", "0"}:
        raise ValueError
    return raw.lower() in {"true", "1"}


def _networks(raw: str) -> list[str]:
    return [str(ip_network(part)) for part in split(raw)]


def _countries(raw: str) -> list[str]:
    countries = [part.upper() for part in split(raw)]
    if set(countries) - phonenumbers.SUPPORTED_REGIONS:
        raise ValueError
    return countries


def _sender_ids(raw: str) -> dict[str, str]:
    pairs = [part.partition(":") for part in split(raw)]
    senders = {country: sender for country, _, sender in pairs}
    if set(senders) - phonenumbers.SUPPORTED_REGIONS or len(senders) < len(pairs):
        raise ValueError
    if not all(re.fullmatch(SENDER_ID, sender, re.ASCII) for sender in senders.values()):
        raise ValueError
    return senders


def _field_keys(raw: str) -> list[str]:
    keys = split(raw)
    if not keys:
        raise ValueError
    for key in keys:
        Fernet(key)  # raises ValueError for an invalid key
    return keys


def _database(raw: str) -> dict[str, str]:
    if not re.match(r"postgres(ql)?://", raw):
        raise ValueError
    try:
        parts = conninfo.conninfo_to_dict(raw)
    except ProgrammingError:
        raise ValueError from None
    return {name: str(value) for name, value in parts.items() if value is not None}


def _redis(raw: str) -> str:
    parts = urlsplit(raw)
    port = parts.port  # raises ValueError for an invalid port
    is_socket = parts.scheme == "unix" and parts.path.startswith("/")
    if not is_socket and (parts.scheme not in {"redis", "rediss"} or not parts.hostname or port == 0):
        raise ValueError
    return raw


SENDER_ID = r"\+[1-9][0-9]{6,14}|[0-9]{3,8}|(?=.*[A-Za-z])[A-Za-z0-9-]{1,11}"
SENDER_WORDS = "a number such as +15550100, or 1 to 11 letters, digits and dashes"
TEXT = matching(r"[^\x00-\x1f\x7f]+", "text in one line")
FLAG: ValueType[bool] = ValueType("true or false", _flag)
PORT = whole(0, 65535)
RATE = matching(r"[1-9][0-9]{0,5}/(second|minute|hour|day)", "a limit such as 100/second or 30/minute")
CLASS_PATH = matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", "the dotted path of a class")
PATH = matching(r"/[^\x00-\x1f\x7f]*", "an absolute path")
EMAIL = matching(r"[^@\s,]+@[^@\s,]+", "an e-mail address")
EMAILS = listed(r"[^@\s,]+@[^@\s,]+", "e-mail addresses")
SECRETS = listed(r"\S+", "keys without spaces")
HOSTS = listed(r"\*|\.?[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]", "host names")
NETWORKS: ValueType[list[str]] = ValueType(
    "IP addresses or networks such as 203.0.113.7 or 2001:db8::/48, comma-separated", _networks
)
COUNTRIES: ValueType[list[str]] = ValueType("countries' two letters, such as GB, comma-separated", _countries)
SENDER_IDS: ValueType[dict[str, str]] = ValueType(
    "pairs of a country's two letters and a sender, such as GB:Checkout,US:+15550100, each country once. "
    f"A sender is {SENDER_WORDS}",
    _sender_ids,
)
FIELD_KEYS: ValueType[list[str]] = ValueType(
    "Fernet keys, comma-separated, newest first: 32 random bytes each, in URL-safe base64", _field_keys
)
DATABASE: ValueType[dict[str, Any]] = ValueType(
    "an address such as postgresql://user@host.example/checkout", _database
)
REDIS: ValueType[str] = ValueType("an address that begins with redis://, rediss:// or unix:///", _redis)
