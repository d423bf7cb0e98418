"""What a stranger sends costs little more than a plain refusal, wherever it goes; twice as much costs twice."""

import base64
import contextlib
import functools
from collections.abc import Callable
from typing import NamedTuple

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils import translation
from pytest_django.fixtures import Settings
from rest_framework import serializers

from checkout.api import calls
from checkout.models import Checkout
from config import bodies, merchant_api
from config.lib import address, cursor, fields, origins, redaction, request_id
from config.lib.cookies import CookieMiddleware
from hosted_page import forms, sign_in
from payments import money
from payments.models import Merchant
from payments.provider import ForgedNotification
from payments.providers.sandbox import notices
from portal import oauth
from tests.config import price
from webhooks import targets

MOST = 50  # times the CPU of a plain refusal
FORM, JSON, MULTIPART = (
    "application/x-www-form-urlencoded",
    "application/json",
    "multipart/form-data; boundary=x",
)
PART = b'--x\r\nContent-Disposition: form-data; name="a"'


class Filled(NamedTuple):
    """A piece again and again, between a beginning and an end."""

    piece: bytes
    before: bytes = b""
    after: bytes = b""

    def of(self, size: int) -> bytes:
        times = (size - len(self.before) - len(self.after)) // len(self.piece)
        return self.before + self.piece * times + self.after


SHAPES: dict[str, tuple[str, Filled]] = {
    "escaped quotes without an end": (JSON, Filled(b'\\"', before=b"[" * 21 + b'"')),
    "nested lists": (JSON, Filled(b"[")),
    "empty objects": (JSON, Filled(b"{},", before=b"[", after=b"{}]")),
    "keys": (JSON, Filled(b'"a":0,', before=b"{", after=b'"b":0}')),
    "a long integer": (JSON, Filled(b"9")),
    "escapes": (FORM, Filled(b"%41", before=b"code=")),
    "broken escapes": (FORM, Filled(b"%", before=b"code=")),
    "ampersands": (FORM, Filled(b"&")),
    "fields": (FORM, Filled(b"a=&")),
    "equal signs": (FORM, Filled(b"=")),
    "blanks": (FORM, Filled(b"+", before=b"phone=")),
    "digits": (FORM, Filled(b"1", before=b"phone=+")),
    "boundaries": (MULTIPART, Filled(b"--x\r\n")),
    "parts": (MULTIPART, Filled(PART + b"\r\n\r\n\r\n", after=b"--x--\r\n")),
    "files": (MULTIPART, Filled(PART + b'; filename="a"\r\n\r\n\r\n', after=b"--x--\r\n")),
    "a part's headers": (MULTIPART, Filled(b"A: b\r\n", before=PART + b"\r\n", after=b"\r\n\r\n--x--\r\n")),
    "a part's quotes": (MULTIPART, Filled(b'\\"', before=PART + b'; c="', after=b'"\r\n\r\n\r\n--x--\r\n')),
    "line breaks": (MULTIPART, Filled(b"\r\n", before=PART + b"\r\n\r\n")),
    "base64": (
        MULTIPART,
        Filled(
            b"\n", before=PART + b"\r\nContent-Transfer-Encoding: base64\r\n\r\nA", after=b"\r\n--x--\r\n"
        ),
    ),
}


@pytest.fixture
def open_ones(unpaid: Checkout) -> list[str]:
    """What takes a POST without a login: each kind of page, the API, what is only read, and what is not there."""
    return [
        *(f"/pay/{step}?id={unpaid.pk}" for step in ("phone", "code", "split")),
        *("/pay/language", "/pay/share/x/phone", "/pay/offers/x", "/bank/card/x", "/accounts/login/"),
        *("/accounts/password/reset/", "/join/x", "/admin/login/", "/oauth/token", "/provider/notifications"),
        *(
            "/api/merchant/v1/checkouts",
            f"/api/sandbox/v1/checkouts/{unpaid.pk}/pay",
            "/api/docs",
            "/nothing",
        ),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("name", SHAPES)
def test_costs_little_more_than_a_plain_refusal(open_ones: list[str], name: str) -> None:
    client = Client(raise_request_exception=False)
    content_type, shape = SHAPES[name]
    with price.as_in_a_web_process():
        plain = price.cpu(lambda: client.post("/api/nothing", b"", content_type=JSON))
        for path in open_ones:
            body = shape.of(bodies._largest(path))  # a larger one is refused unread
            act = functools.partial(client.post, path, body, content_type=content_type)
            assert price.is_within(act, MOST * plain), path


def _asked(**headers: str) -> HttpRequest:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return RequestFactory(REMOTE_ADDR="10.0.0.1").get("/", headers=names)


def _cookies(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(len(request.COOKIES)))


def _basic(value: str) -> None:
    encoded = base64.b64encode(value.encode()).decode()
    with contextlib.suppress(oauth.InvalidRequest):
        oauth._basic(_asked(authorization=f"Basic {encoded}"))


def _url(value: str) -> None:
    with contextlib.suppress(serializers.ValidationError):
        fields.ReturnUrl().run_validation(value)


def _target(value: str) -> None:
    targets.check_url.cache_clear()
    with contextlib.suppress(targets.TargetRefused):
        targets.check_url(value, allow_loopback=False)


def _phone(value: str) -> None:
    with contextlib.suppress(sign_in.InvalidPhone):
        sign_in.parse_phone(value, Merchant(country="GB"))


def _cursor(value: str) -> None:
    with contextlib.suppress(cursor.InvalidCursor):
        cursor._read(value, "log")


def _notice(value: str) -> None:
    with contextlib.suppress(ForgedNotification):
        notices.read(value, value.encode())


READERS: dict[str, Callable[[str], object]] = {
    "cookies": lambda value: CookieMiddleware(_cookies)(_asked(cookie=value)),
    "Basic": _basic,
    "X-Forwarded-For": lambda value: address.of(_asked(x_forwarded_for=value)),
    "Accept-Language": lambda value: translation.get_language_from_request(_asked(accept_language=value)),
    "Authorization": merchant_api._BEARER.fullmatch,
    "Idempotency-Key": calls._KEY.fullmatch,
    "X-Request-Id": request_id._ACCEPTABLE.fullmatch,
    "return_url": _url,
    "an origin": origins.of,
    "webhook url": _target,
    "a phone": _phone,
    "a name": forms.clean_name,
    "an amount": lambda value: money.parse(value, "GBP"),
    "a cursor": _cursor,
    "a signature": _notice,
    "a log line": redaction.blank,
}
VALUES: dict[str, Filled] = {
    "quoted backslashes": Filled(b"\\", b'a="', b'"'),
    "escaped quotes": Filled(b'\\"', b'a="', b'"'),
    "octal escapes": Filled(b"\\1", b'a="', b'"'),
    "semicolons": Filled(b"a=b; "),
    "blanks": Filled(b" ", b"bearer", b"x"),
    "bearers": Filled(b"bearer "),
    "commas": Filled(b"1,"),
    "colons": Filled(b":", b"https://"),
    "dots": Filled(b"1.", b"https://"),
    "labels": Filled(b"a.", b"https://", b"example/"),
    "digits": Filled(b"1", b"+"),
    "digits and blanks": Filled(b"1 "),
    "percent signs": Filled(b"%", b"https://a.example/"),
    "brackets": Filled(b"[", b"https://"),
    "letters": Filled("é".encode(), b"https://", b".example"),
    "languages": Filled(b"fr-fr-", b"", b";q=0.1"),
    "secrets": Filled(b"whsec_"),
    "lines": Filled(b"\n", b"a", b"a"),
}


# What each reader finds hardest; a header is read at most that long, so shapes are as long as headers are.
WORST = {
    "cookies": ("quoted backslashes", "escaped quotes", "octal escapes", "semicolons"),
    "Basic": ("percent signs", "colons"),
    "X-Forwarded-For": ("commas", "colons", "dots", "brackets"),
    "Accept-Language": ("languages", "commas"),
    "Authorization": ("bearers", "blanks"),
    "Idempotency-Key": ("blanks", "digits and blanks"),
    "X-Request-Id": ("dots", "digits"),
    "return_url": ("labels", "dots", "letters", "percent signs"),
    "an origin": ("labels", "dots", "letters", "brackets"),
    "webhook url": ("labels", "dots", "letters", "brackets", "percent signs"),
    "a phone": ("digits", "digits and blanks"),
    "a name": ("lines", "blanks"),
    "an amount": ("digits", "dots", "digits and blanks"),
    "a cursor": ("colons", "dots"),
    "a signature": ("commas", "languages"),
    "a log line": ("bearers", "blanks", "digits", "digits and blanks", "secrets"),
}


@pytest.mark.parametrize(
    ("reader", "value"), [(reader, value) for reader, found in WORST.items() for value in found]
)
def test_of_twice_as_much_is_twice_as_high(reader: str, value: str, settings: Settings) -> None:
    settings.TRUSTED_PROXY_COUNT = 1
    act, filled = READERS[reader], VALUES[value]
    assert price.growth(act, lambda size: filled.of(size).decode(), 7_900) <= price.MOST_GROWTH
