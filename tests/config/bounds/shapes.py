"""Texts and bodies that are expensive for a badly written parser."""

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol


class Shape(Protocol):
    """A text that consists of any number of pieces."""

    def pieces(self, size: int) -> int:
        """Return the number of pieces in a text of about this many characters."""

    def times(self, count: int) -> str:
        """Return the text with this many pieces."""


class Filled(NamedTuple):
    """One piece, repeated between a beginning and an end."""

    piece: str
    before: str = ""
    after: str = ""

    def pieces(self, size: int) -> int:
        return max(1, (size - len(self.before) - len(self.after)) // len(self.piece))

    def times(self, count: int) -> str:
        return self.before + self.piece * count + self.after

    def of(self, size: int) -> str:
        return self.times(self.pieces(size))


class Built(NamedTuple):
    """A text that `build` makes from a number of pieces, each about `length` characters long."""

    length: int
    build: Callable[[int], str]

    def pieces(self, size: int) -> int:
        return size // self.length

    def times(self, count: int) -> str:
        return self.build(count)


PIECES = (
    *("a", "A", "é", "1", "0", "1 ", "+1", "-", ".", "a.", "1.", "-a.", " ", "a ", "\t", "\n", "\r\n"),
    *("%", "%41", "%2F", "%00", "\\", '\\"', '"', "'", ";", "a=b; ", "a=&", "&", "=", ",", "1,", ":", "::"),
    *("/", "/a1", "a/", "[", "]", "{", "(", "?a=", "#", "@", "a@", "<", "\x00", "٣", "€", "İ"),
    # Unicode normalization reorders these combining marks.
    *("\N{COMBINING GRAVE ACCENT BELOW}\N{COMBINING GRAVE ACCENT}", "%CC%96%CC%80"),
    *("bearer ", "whsec_", "token", "token=", "fr-fr-", "gzip,", "t=1,", "v1=", "pay/share/", "0x", "GMT "),
)
# Each text repeats one piece. There are two texts for each piece: a plain one, and one with an end that does not match.
# Such an end makes a regular expression backtrack over the repeated pieces.
TEXTS = tuple(Filled(piece, after=end) for piece in PIECES for end in ("", "!"))
ADDRESSES = tuple(
    Filled(piece, before, "!") for piece in PIECES for before in ("https://", "https://a.example/")
)
QUOTED = tuple(Filled(piece, 'a; a="', end) for piece in PIECES for end in ("", '"'))
PART = '--x\r\nContent-Disposition: form-data; name="a"'
PARTS = (
    Filled("--x\r\n"),
    Filled(f"{PART}\r\n\r\n\r\n", after="--x--\r\n"),
    Filled(f'{PART}; filename="a"\r\n\r\n\r\n', after="--x--\r\n"),
    Filled("A: b\r\n", f"{PART}\r\n", "\r\n\r\n--x--\r\n"),
    Filled('\\"', f'{PART}; c="', '"\r\n\r\n\r\n--x--\r\n'),
    Filled(";", f'{PART}; c="', '"\r\n\r\n\r\n--x--\r\n'),
    Filled("\r\n", f"{PART}\r\n\r\n"),
    Filled("\r\n--", f"{PART}\r\n\r\n"),
    Filled("\n", f"{PART}\r\nContent-Transfer-Encoding: base64\r\n\r\nA", "\r\n--x--\r\n"),
)
OK = "HTTP/1.1 200 OK\r\n"
CHUNKED = f"{OK}Transfer-Encoding: chunked\r\n\r\n"
ANSWERS = (
    Filled("HTTP/1.1 100 Continue\r\n\r\n"),
    Filled("a", "HTTP/1.1 200 "),
    Filled("\r\n"),
    Filled("a: b\r\n", OK),
    Filled(" ", f"{OK}a:"),
    Filled(",", f"{OK}Connection: close"),
    Filled("\r\n a", f"{OK}a: b"),
    Filled("1\r\na\r\n", CHUNKED),
    Filled("0", CHUNKED),
    Filled(";a=b", f"{CHUNKED}1"),
    Filled("a: b\r\n", f"{CHUNKED}0\r\n"),
    Filled("a", f"{OK}Content-Length: 9999999\r\n\r\n"),
)

# The form fields of the hosted page, the login, the sandbox bank and the token endpoint. With the values in CHOSEN, a
# page reads all of its fields.
FIELDS = (
    *(
        "phone",
        "code",
        "name",
        "amount",
        "your_name",
        "people",
        "email",
        "version",
        "share",
        "language",
        "next",
    ),
    *("answer", "number", "expiry", "login", "password", "password1", "client_id", "client_secret", "scope"),
)
CHOSEN = "opt_in=yes&split=own&grant_type=client_credentials"


def typed(filled: Filled, size: int) -> str:
    """Return a form of this size in which every field has the same text."""
    value = filled.of(size // len(FIELDS) // len(filled.piece.encode()) * len(filled.piece) - 20)
    return "&".join([CHOSEN, *(f"{name}={value}" for name in FIELDS)])


JSON, FORM, MULTIPART = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
)
DOCUMENTS = (
    Filled('\\"', "[" * 21 + '"'),
    Filled("["),
    Filled("{},", "[", "{}]"),
    Filled('"a":0,', "{", '"b":0}'),
    Filled("9"),
)
FORMS = (
    Filled("%41", "code="),
    Filled("%", "code="),
    Filled("&"),
    Filled("a=&"),
    Filled("="),
    Filled("1", "phone=+"),
)
IN_FIELDS = (
    *(Filled(piece) for piece in ("1", "é", "+", "a.", "\n", "\x00")),
    Filled("\N{COMBINING GRAVE ACCENT BELOW}\N{COMBINING GRAVE ACCENT}", "https://"),
)
# Content types, each with a function that returns a body of the given size.
BODIES: tuple[tuple[str, Callable[[int], str]], ...] = (
    *((JSON, filled.of) for filled in DOCUMENTS),
    *((FORM, filled.of) for filled in FORMS),
    *((FORM, functools.partial(typed, filled)) for filled in IN_FIELDS),
    *((MULTIPART, filled.of) for filled in PARTS),
    (f"{MULTIPART}; charset=punycode", Filled("ba", f"{PART}\r\n\r\n", "\r\n--x--\r\n").of),
    (f'{MULTIPART}; c="{";" * 7_900}', Filled("&").of),
)
