"""Checks each request against Stripe's published names, types and enumerations (`parameters.json`)."""

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


def check(path: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the typed parameters of a request, or refuse it as Stripe does.

    `path` is the method and path, such as `POST /v1/refunds`.
    """
    return _object(document()["paths"][path], given, "")


def _object(name: str, given: Any, at: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Refusal("Invalid object", param=at)
    kind = document()["types"][name]
    for field in given:
        if field not in kind["fields"]:
            where = _inside(at, field)
            raise Refusal(f"Received unknown parameter: {where}", "parameter_unknown", where)
    for field in kind["required"]:
        if field not in given:
            where = _inside(at, field)
            raise Refusal(f"Missing required param: {where}.", "parameter_missing", where)
    fields = kind["fields"]
    return {field: _typed(fields[field], value, _inside(at, field)) for field, value in given.items()}


def _inside(at: str, field: str) -> str:
    return f"{at}[{field}]" if at else field


def _typed(kind: Any, given: Any, at: str) -> Any:
    if isinstance(kind, str):
        return _PLAIN[kind](given, at)
    ((sort, inner),) = kind.items()
    return _COMPOUND[sort](inner, given, at)


def _enum(allowed: list[str], given: Any, at: str) -> str:
    if given not in allowed:
        *others, last = [name for name in allowed if name] or [""]
        raise Refusal(
            f"Invalid {at}: must be one of {', '.join(others)}{' or ' if others else ''}{last}", param=at
        )
    return str(given)


def _list(inner: Any, given: Any, at: str) -> list[Any]:
    if not isinstance(given, list):
        raise Refusal("Invalid array", param=at)
    return [_typed(inner, value, f"{at}[{number}]") for number, value in enumerate(given)]


def _map(inner: Any, given: Any, at: str) -> dict[str, Any]:
    # If the names in a map are numbers, `forms.decode` has turned the map into a list.
    if isinstance(given, list):
        given = {str(number): value for number, value in enumerate(given)}
    if not isinstance(given, dict):
        raise Refusal("Invalid object", param=at)
    return {name: _typed(inner, value, _inside(at, name)) for name, value in given.items()}


def _any(kinds: list[Any], given: Any, at: str) -> Any:
    """Return the value, converted to the first type that accepts it.

    If no type accepts it, raise the error of a type that the value resembles.
    """
    errors = []
    for kind in kinds:
        try:
            return _typed(kind, given, at)
        except Refusal as refusal:
            is_compound = isinstance(kind, dict) and "enum" not in kind
            errors.append((is_compound == isinstance(given, dict | list), refusal))
    raise next((refusal for looks_like_it, refusal in reversed(errors) if looks_like_it), errors[-1][1])


def _string(given: Any, at: str) -> str:
    if not isinstance(given, str):
        raise Refusal(f"Invalid string: {json.dumps(given)}", param=at)
    if not given:
        message = f"You passed an empty string for '{at}'. We assume empty values are an attempt to unset a parameter"
        raise Refusal(f"{message}; however '{at}' cannot be unset.", "parameter_invalid_empty", at)
    return given


def _integer(given: Any, at: str) -> int:
    if not isinstance(given, str) or not _INTEGER.fullmatch(given):
        raise Refusal(f"Invalid integer: {given}", "parameter_invalid_integer", at)
    return int(given)


def _number(given: Any, at: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise Refusal(f"Invalid decimal: {given}", param=at) from None


def _boolean(given: Any, at: str) -> bool:
    if not isinstance(given, str) or given not in _BOOLEANS:
        raise Refusal(f"Invalid boolean: {given}", param=at)
    return _BOOLEANS[given]


_PLAIN: dict[str, Callable[[Any, str], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "any": lambda given, at: given,
}
_COMPOUND: dict[str, Callable[[Any, Any, str], Any]] = {
    "type": _object,
    "enum": _enum,
    "list": _list,
    "map": _map,
    "any": _any,
}
