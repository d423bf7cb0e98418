"""A strict JSON parser that takes linear time. It refuses JSON that other parsers interpret differently.

Rules api.strict_json, api.linear_json.
"""

import re
from typing import Any

import orjson

DEEPEST = 20
_MAX_SHOWN = 40
# Tokens of valid JSON. The quantifiers are possessive, so the expression never backtracks and takes linear
# time.
_TOKEN = re.compile(
    r"""
    (?P<string> " [^"\\]*+ (?: \\. [^"\\]*+ )*+ " ) (?P<is_key> [ \t\n\r]*+ : )?+
    | (?P<opening> [\[{] )
    | (?P<closing> [\]}] )
    | (?<! [0-9.eE+-] ) (?P<integer> -? [0-9]{19,}+ ) (?! [.eE] )
    """,
    re.DOTALL | re.VERBOSE,
)


class InvalidJson(Exception):
    """Raised if the body is not strict JSON.

    The body is not UTF-8 or not JSON, is too deep, or has a duplicate key, a BOM, a lone surrogate or an
    overflowing number.
    """

    def __init__(self, problem: str, *, preceding: str) -> None:
        """Describe a problem. `preceding` is the text before it, which determines its line and column."""
        self.problem = problem
        self.line = preceding.count("\n") + 1
        self.column = len(preceding) - preceding.rfind("\n")
        super().__init__(f"{problem}, at line {self.line}, column {self.column}")


def parse(body: bytes) -> Any:
    """Return the value that the body encodes. Raises InvalidJson."""
    text = _decode(body)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("depth limit"):
            # This call always raises, because DEEPEST is lower than the library's limit.
            _check_tokens(text[: error.pos])
        raise InvalidJson(error.msg, preceding=text[: error.pos]) from None
    _check_tokens(text)
    return value


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidJson("not UTF-8", preceding=body[: error.start].decode()) from None


def _check_tokens(text: str) -> None:
    """Raise InvalidJson for JSON that parsers read differently: deep nesting, duplicate keys, big integers."""
    keys: list[set[str]] = []  # the keys of each open object; for a list, an empty set
    for token in _TOKEN.finditer(text):
        problem = ""
        match token.lastgroup:
            case "opening":
                keys.append(set())
                problem = f"nested deeper than {DEEPEST} levels" if len(keys) > DEEPEST else ""
            case "closing":
                keys.pop()
            case "is_key":
                problem = _check_duplicate(token["string"], keys[-1])
            case "integer":
                problem = _check_overflow(token["integer"])
        if problem:
            raise InvalidJson(problem, preceding=text[: token.start()])


def _check_duplicate(string: str, keys: set[str]) -> str:
    """Add the unescaped key to `keys`. Return an error text if the key is a duplicate, else ""."""
    key = orjson.loads(string) if "\\" in string else string[1:-1]
    if key in keys:
        return f"the key {orjson.dumps(key[:_MAX_SHOWN]).decode()} occurs twice in one object"
    keys.add(key)
    return ""


def _check_overflow(digits: str) -> str:
    """Return an error text for an integer beyond 64 bits, which parsers read differently, else ""."""
    is_long = len(digits) > 20
    return "an integer beyond 64 bits" if is_long or not -(2**63) <= int(digits) < 2**63 else ""
