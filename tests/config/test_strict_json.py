"""Reading JSON: what is refused is told with its place, and no text costs more than its size."""

import contextlib
import re
from collections.abc import Callable

import pytest

from config.lib import strict_json
from config.lib.strict_json import InvalidJson
from tests.config import price

Shape = Callable[[int], bytes]

# Each costs the most where a reader is careless: nesting, strings that never end, escapes, twins, long numbers.
WORST: dict[str, Shape] = {
    "nested lists": lambda n: b"[" * n,
    "nested objects": lambda n: b'{"":' * (n // 5),
    "nested and closed": lambda n: b"[" * (n // 2) + b"]" * (n // 2),
    "escaped quotes without an end": lambda n: b"[" * 21 + b'"' + b'\\"' * (n // 2),
    "escaped quotes and a backslash": lambda n: b'["' + b'\\"' * (n // 2) + b"\\",
    "escaped quotes": lambda n: b'{"":"' + b'\\"' * (n // 2) + b'"}',
    "quotes": lambda n: b'"' * n,
    "backslashes": lambda n: b'"' + b"\\" * n,
    "empty strings": lambda n: b"[" + b'"",' * (n // 3) + b'""]',
    "a string and blanks": lambda n: b'["' + b" " * (n // 2) + b'"' + b" " * (n // 2) + b"]",
    "surrogates": lambda n: b'"' + b"\\ud83d\\ude00" * (n // 12) + b'"',
    "lists in a list": lambda n: b"[" + b"[]," * (n // 3) + b"[]]",
    "objects in a list": lambda n: b"[" + b"{}," * (n // 3) + b"{}]",
    "keys": lambda n: b"{" + b",".join(b'"%06x":0' % key for key in range(n // 11)) + b"}",
    "a twin at the end": lambda n: (
        b"{" + b",".join(b'"%06x":0' % key for key in range(n // 11)) + b',"000000":0}'
    ),
    "escaped keys": lambda n: b"{" + b",".join(b'"\\u0061%06x":0' % key for key in range(n // 17)) + b"}",
    "one long key": lambda n: b'{"' + b"k" * n + b'":0}',
    "a long integer": lambda n: b"[" + b"9" * n + b"]",
    "a long fraction": lambda n: b"[0." + b"3" * n + b"]",
    "a long exponent": lambda n: b"[1e-" + b"0" * n + b"1]",
    "digits": lambda n: b"[" + b"1234567890123456789," * (n // 20) + b"1]",
    "numbers": lambda n: b"[" + b"1," * (n // 2) + b"1]",
    "minus signs": lambda n: b"-" * n,
    "lines": lambda n: b"\n" * n + b"x",
    "no end of commas": lambda n: b"[" + b"0," * (n // 2),
    "not UTF-8": lambda n: b'"' + "ä".encode() * (n // 2) + b"\xff",
}


def read(body: bytes) -> None:
    with contextlib.suppress(InvalidJson):
        strict_json.parse(body)


@pytest.mark.rule("api.linear_json")
class TestPrice:
    @pytest.mark.parametrize("name", WORST)
    def test_of_twice_as_much_is_twice_as_high(self, name: str) -> None:
        assert price.growth(read, WORST[name], 128 * 1024) <= price.MOST_GROWTH


class TestPlace:
    @pytest.mark.parametrize(
        ("body", "problem", "line", "column"),
        [
            (b"", "empty", 1, 1),
            (b'{"a": 1,}', "trailing comma", 1, 8),
            (b'{"a": 1\n "b": 2}', "expected ','", 2, 2),
            (b"{'a': 1}", "expected a string key", 1, 2),
            ('{"ä": "ä",\r\n  "ö": x}'.encode(), "expected a JSON value", 2, 8),
            (b'{"a": NaN}', "expected a JSON value", 1, 7),
            (b"\xef\xbb\xbf{}", "byte order mark", 1, 1),
            (b'{\n"a": "\xff"}', "not UTF-8", 2, 7),
            (b'{"a": "\\ud800"}', "surrogate", 1, 8),
            (b'{"a": 1e999}', "infinity", 1, 7),
            (b'{"a": 9223372036854775808}', "beyond 64 bits", 1, 7),
            (b'{"a": -9223372036854775809}', "beyond 64 bits", 1, 7),
            (b'{"a": [1, ' + b"9" * 100 + b"]}", "beyond 64 bits", 1, 11),
            (b'{"a": 1,\n "a": 2}', '"a" stands twice', 2, 2),
            (b'{"b": {"a": 1, "\\u0061" : 2}}', '"a" stands twice', 1, 16),
            (b"[" * 21 + b"]" * 21, "deeper than 20", 1, 21),
            (b"[" * 21 + b'"', "unexpected end", 1, 23),
            (b"[\n" * 5_000, "deeper than 20", 21, 1),
        ],
        ids=lambda given: repr(given[:24]) if isinstance(given, bytes) else None,
    )
    def test_and_problem_are_told(self, body: bytes, problem: str, line: int, column: int) -> None:
        with pytest.raises(InvalidJson, match=re.escape(problem)) as refused:
            strict_json.parse(body)
        assert (refused.value.line, refused.value.column) == (line, column)
        assert str(refused.value).endswith(f"at line {line}, column {column}")


class TestValue:
    @pytest.mark.parametrize(
        ("body", "value"),
        [
            (b'{"a": {"a": 1}, "b": {"a": 1}}', {"a": {"a": 1}, "b": {"a": 1}}),
            (b'["a", "a", {"a": "a"}]', ["a", "a", {"a": "a"}]),
            (b'{"": 1, " ": 2}', {"": 1, " ": 2}),
            (b'{"a\\"": 1, "a\\\\": 2}', {'a"': 1, "a\\": 2}),
            (b'[":", "]]]]", "\\"}"]', [":", "]]]]", '"}']),
            (b'["99999999999999999999"]', ["99999999999999999999"]),
            (b"[9223372036854775807, -9223372036854775808]", [2**63 - 1, -(2**63)]),
            (
                b"[0.12345678901234567890123, 12345678901234567890123.5, 12345678901234567890123e0]",
                [0.12345678901234568, 1.2345678901234568e22, 1.2345678901234568e22],
            ),
            (b"[" * 20 + b"]" * 20, [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]),
            (b" 5 ", 5),
        ],
    )
    def test_is_read(self, body: bytes, value: object) -> None:
        assert strict_json.parse(body) == value
