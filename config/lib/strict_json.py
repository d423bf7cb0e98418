"""Strict JSON: one value, without what makes two readers disagree."""

import json
import re
from typing import Any, NoReturn

import orjson

DEEPEST = 20
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')


class InvalidJson(Exception):
    """Not UTF-8, not JSON, duplicate keys, NaN, BOM, lone surrogates, too deep, or a number that overflows."""


def parse(body: bytes) -> Any:
    """Return the value that the body holds; raises InvalidJson."""
    try:
        text = body.decode("utf-8")
        _check_depth(text)
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse,
            parse_float=_float,
            parse_int=_integer,
        )
        orjson.dumps(value)  # refuses lone surrogates
    except (ValueError, TypeError, RecursionError):
        raise InvalidJson from None
    return value


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for character in _STRINGS.sub("", text):
        depth += (character in "[{") - (character in "]}")
        if depth > DEEPEST:
            raise ValueError("too deep")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError("overflow")
    return value


def _integer(digits: str) -> int:
    """Beyond 64 bits JSON readers disagree."""
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise ValueError("overflow")
    return int(digits)
