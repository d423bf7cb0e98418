"""Checks each request against the names, types and enumerations that Stripe publishes (`parameters.json`)."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.payments.stripe_peer.errors import Refusal

_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"-?\d+")


@cache
def document() -> dict[str, Any]:
    """Return the content of `parameters.json`."""
    read: dict[str, Any] = json.loads(Path(__file__).with_name("parameters.json").read_text())
    return read


def check(path: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return the typed parameters of a request. Refuse an invalid request as Stripe does.

    `path` is the method and path, such as `POST /v1/refunds`.
    """
    return _object(document()["paths"][path], content, "")


def _object(name: str, content: Any, at: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise Refusal("Invalid object", param=at)
    kind = document()["types"][name]
    for field in content:
        if field not in kind["fields"]:
            where = _inside(at, field)
            raise Refusal(f"Received unknown parameter: {where}", "parameter_unknown", where)
    for field in kind["required"]:
        if field not in content:
            where = _inside(at, field)
            raise Refusal(f"Missing required param: {where}.", "parameter_missing", where)
    fields = kind["fields"]
    return {field: _typed(fields[field], value, _inside(at, field)) for field, value in content.items()}


def _inside(at: str, field: str) -> str:
    return f"{at}[{field}]" if at else field


def _typed(kind: Any, content: Any, at: str) -> Any:
    if isinstance(kind, str):
        return _PLAIN[kind](content, at)
    ((sort, inner),) = kind.items()
    return _COMPOUND[sort](inner, content, at)


def _enum(allowed: list[str], content: Any, at: str) -> str:
    if content not in allowed:
        *others, last = [name for name in allowed if name] or [""]
        raise Refusal(
            f"Invalid {at}: must be one of {', '.join(others)}{' or ' if others else ''}{last}", param=at
        )
    return str(content)


def _list(inner: Any, content: Any, at: str) -> list[Any]:
    if not isinstance(content, list):
        raise Refusal("Invalid array", param=at)
    return [_typed(inner, value, f"{at}[{number}]") for number, value in enumerate(content)]


def _map(inner: Any, content: Any, at: str) -> dict[str, Any]:
    # If all names in a map are numbers, `forms.decode` has turned the map into a list.
    if isinstance(content, list):
        content = {str(number): value for number, value in enumerate(content)}
    if not isinstance(content, dict):
        raise Refusal("Invalid object", param=at)
    return {name: _typed(inner, value, _inside(at, name)) for name, value in content.items()}


def _any(kinds: list[Any], content: Any, at: str) -> Any:
    """Return the value, converted to the first type that accepts it.

    If no type accepts the value, raise the error of a type that the value resembles.
    """
    errors = []
    for kind in kinds:
        try:
            return _typed(kind, content, at)
        except Refusal as refusal:
            is_compound = isinstance(kind, dict) and "enum" not in kind
            errors.append((is_compound == isinstance(content, dict | list), refusal))
    raise next((refusal for looks_like_it, refusal in reversed(errors) if looks_like_it), errors[-1][1])


def _string(content: Any, at: str) -> str:
    if not isinstance(content, str):
        raise Refusal(f"Invalid string: {json.dumps(content)}", param=at)
    if not content:
        message = f"You passed an empty string for '{at}'. We assume empty values are an attempt to unset a parameter"
        raise Refusal(f"{message}; however '{at}' cannot be unset.", "parameter_invalid_empty", at)
    return content


def _integer(content: Any, at: str) -> int:
    if not isinstance(content, str) or not _INTEGER.fullmatch(content):
        raise Refusal(f"Invalid integer: {content}", "parameter_invalid_integer", at)
    return int(content)


def _number(content: Any, at: str) -> float:
    try:
        return float(content)
    except (TypeError, ValueError):
        raise Refusal(f"Invalid decimal: {content}", param=at) from None


def _boolean(content: Any, at: str) -> bool:
    if not isinstance(content, str) or content not in _BOOLEANS:
        raise Refusal(f"Invalid boolean: {content}", param=at)
    return _BOOLEANS[content]


_PLAIN: dict[str, Callable[[Any, str], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "any": lambda content, at: content,
}
_COMPOUND: dict[str, Callable[[Any, Any, str], Any]] = {
    "type": _object,
    "enum": _enum,
    "list": _list,
    "map": _map,
    "any": _any,
}
