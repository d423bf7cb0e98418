"""The strict JSON parser names the position of an error, and takes linear time."""

import contextlib
import re

import pytest

from config.lib import strict_json
from config.lib.strict_json import InvalidJson
from tests.config.bounds import price
from tests.config.bounds.shapes import Built, Filled, Shape

# Texts that are expensive for a badly written parser, for example deep nesting, strings without an end, escapes,
# duplicate keys or long numbers.
WORST: dict[str, Shape] = {
    "nested lists": Filled("["),
    "nested objects": Filled('{"":'),
    "nested and closed": Built(2, lambda n: "[" * n + "]" * n),
    "escaped quotes without an end": Filled('\\"', "[" * 21 + '"'),
    "escaped quotes and a backslash": Filled('\\"', '["', "\\"),
    "escaped quotes": Filled('\\"', '{"":"', '"}'),
    "quotes": Filled('"'),
    "backslashes": Filled("\\", '"'),
    "empty strings": Filled('"",', "[", '""]'),
    "a string and blanks": Built(2, lambda n: '["' + " " * n + '"' + " " * n + "]"),
    "surrogates": Filled("\\ud83d\\ude00", '"', '"'),
    "lists in a list": Filled("[],", "[", "[]]"),
    "objects in a list": Filled("{},", "[", "{}]"),
    "keys": Built(11, lambda n: "{" + ",".join(f'"{key:06x}":0' for key in range(n)) + "}"),
    "a twin at the end": Built(
        11, lambda n: "{" + "".join(f'"{key:06x}":0,' for key in range(n)) + '"000000":0}'
    ),
    "escaped keys": Built(17, lambda n: "{" + ",".join(f'"\\u0061{key:06x}":0' for key in range(n)) + "}"),
    "one long key": Filled("k", '{"', '":0}'),
    "a long integer": Filled("9", "[", "]"),
    "a long fraction": Filled("3", "[0.", "]"),
    "a long exponent": Filled("0", "[1e-", "1]"),
    "digits": Filled("1234567890123456789,", "[", "1]"),
    "numbers": Filled("1,", "[", "1]"),
    "minus signs": Filled("-"),
    "lines": Filled("\n", after="x"),
    "no end of commas": Filled("0,", "["),
    "not UTF-8": Filled("ä", '"', "\udcff"),
}


def read(text: str) -> None:
    with contextlib.suppress(InvalidJson):
        strict_json.parse(text.encode(errors="surrogateescape"))


@pytest.mark.rule("api.linear_json")
class TestPrice:
    def test_of_parsing_grows_about_linearly(self) -> None:
        grown = {name: price.growth(read, shape, 256 * 1024) for name, shape in WORST.items()}
        assert {name: times for name, times in grown.items() if times > price.MAX_GROWTH} == {}


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
            (b'{"a": 1,\n "a": 2}', '"a" occurs twice', 2, 2),
            (b'{"b": {"a": 1, "\\u0061" : 2}}', '"a" occurs twice', 1, 16),
            (b"[" * 21 + b"]" * 21, "deeper than 20", 1, 21),
            (b"[" * 21 + b'"', "unexpected end", 1, 23),
            (b"[\n" * 5_000, "deeper than 20", 21, 1),
        ],
        ids=lambda given: repr(given[:24]) if isinstance(given, bytes) else None,
    )
    def test_and_problem_are_reported(self, body: bytes, problem: str, line: int, column: int) -> None:
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
