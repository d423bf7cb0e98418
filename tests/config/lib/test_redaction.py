"""No log line contains a secret address, no matter which code writes the line."""

import io
import logging
import logging.config
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from django.conf import settings
from django.core import mail
from django.http import HttpRequest
from django.test import Client
from gunicorn.config import Config
from gunicorn.glogging import Logger
from hypothesis import given, strategies
from hypothesis import settings as examples
from pytest_django.fixtures import Settings

from config.lib import redaction
from tests.config import addresses
from tests.config.bounds import price
from tests.config.bounds.shapes import Filled

pytestmark = pytest.mark.django_db
TOKEN = "kX3vWq_9-ZtR2mLb7Ay5Hw"
SIGNED = f"eyJhIjoxfQ:1tY2Zx:{TOKEN}"
SESSION = "0193c0de-1111-7000-8000-00000000beef"
ADDRESSES = {
    "pay link": (f"/pay/share/{TOKEN}", TOKEN),
    "pay link, a step": (f"/pay/share/{TOKEN}/decline", TOKEN),
    "way to stop": (f"/pay/stop/{TOKEN}", TOKEN),
    "group link": (f"/pay/g/{TOKEN}", TOKEN),
    "group link, a step": (f"/pay/g/{TOKEN}/2/card", TOKEN),
    "opt-in link": (f"/pay/offers/{SIGNED}", TOKEN),
    "invitation": (f"/join/{TOKEN}", TOKEN),
    "short invitation": ("/join/abcdefgh", "abcdefgh"),
    "new password": (f"/accounts/password/reset/key/3f-{TOKEN}/", TOKEN),
    "card page": (f"/bank/card/{SESSION}", SESSION),
    "challenge": (f"/bank/challenge/{SESSION}", SESSION),
    "what a link of the future may be": (f"/pay/group/{TOKEN}", TOKEN),
    "after the login": (f"/accounts/login/?next=/join/{TOKEN}", TOKEN),
    "after the login, encoded": (f"/accounts/login/?next=%2Fjoin%2F{TOKEN}", TOKEN),
    "back from the card page": (f"/pay/paid?id={SESSION}&card_token={TOKEN}", TOKEN),
}


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Yield the output of the log handler, which is set up as in a process of the service."""
    stream = io.StringIO()
    console = {"class": "logging.StreamHandler", "formatter": "lines", "stream": stream}
    # gunicorn creates its logger before it loads the service.
    gunicorn = Logger(Config())
    logging.config.dictConfig(settings.LOGGING | {"handlers": {"console": console}})
    stream.gunicorn = gunicorn  # type: ignore[attr-defined]
    yield stream
    logging.config.dictConfig(settings.LOGGING)


class Breaking:
    """Middleware that makes every page fail with an error that contains the page's address."""

    def __init__(self, get_response: Callable[..., Any]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        raise RuntimeError(f"cannot show {request.get_full_path()}")


def _by_a_forged_form(address: str, _: io.StringIO) -> None:
    Client(enforce_csrf_checks=True).post(address, {"a": "b"})


def _by_a_broken_page(address: str, _: io.StringIO) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(settings, "MIDDLEWARE", [*settings.MIDDLEWARE, f"{__name__}.Breaking"])
        assert Client(raise_request_exception=False).post(address).status_code == 500


def _by_gunicorn(address: str, stream: Any) -> None:
    environ = {
        "REQUEST_METHOD": "GET",
        "RAW_URI": address,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_REFERER": f"https://checkout.example{address}",
    }
    answer = SimpleNamespace(status="200 OK", sent=1, headers=[])
    stream.gunicorn.cfg.set("accesslog", "-")
    took = SimpleNamespace(seconds=0, microseconds=9, total_seconds=lambda: 0.0)
    stream.gunicorn.access(answer, SimpleNamespace(headers=[]), environ, took)
    try:
        raise OSError(address)
    except OSError:
        stream.gunicorn.exception("Error handling request %s", address)


def _by_libraries(address: str, _: io.StringIO) -> None:
    for name in ("aiohttp.access", "aiohttp.client", "allauth", "asyncio", "whitenoise", "py.warnings"):
        logging.getLogger(name).warning('"GET %s HTTP/1.1" 200', address)
    logging.getLogger("django.server").error("Bad request: GET http://127.0.0.1%s", address)
    facts = {"name": "a.task", "args": repr((address,)), "exc": repr(ValueError(address))}
    logging.getLogger("celery.app.trace").error("%(name)s(%(args)s) raised %(exc)s", facts)


def _by_ourselves(address: str, _: io.StringIO) -> None:
    log = structlog.get_logger("anything")
    log.warning("seen", path=address, nested={"args": [address, (address,)]}, thing=ValueError(address))
    try:
        raise KeyError({"next": address})
    except KeyError:
        log.exception("failed")


WRITERS = {
    "csrf": _by_a_forged_form,
    "5xx": _by_a_broken_page,
    "gunicorn": _by_gunicorn,
    "libraries": _by_libraries,
    "ours": _by_ourselves,
}


class TestSecretAddress:
    @pytest.mark.rule("secret.logs")
    @pytest.mark.parametrize("writer", WRITERS)
    @pytest.mark.parametrize("kind", ADDRESSES)
    def test_is_not_logged(
        self, written: io.StringIO, capfd: pytest.CaptureFixture[str], kind: str, writer: str
    ) -> None:
        address, secret = ADDRESSES[kind]
        capfd.readouterr()
        WRITERS[writer](address, written)
        lines = written.getvalue()
        assert lines, "somebody wrote"
        assert secret not in lines
        beside = capfd.readouterr()
        assert secret not in beside.out + beside.err, "another way out"

    def test_is_not_mailed_when_a_page_fails(self, written: io.StringIO, settings: Settings) -> None:
        settings.ADMINS = [("Olga", "olga@operators.example")]
        _by_a_broken_page(ADDRESSES["pay link"][0], written)
        assert mail.outbox == []

    def test_leaves_the_rest_of_the_path_in_the_line(self, written: io.StringIO) -> None:
        _by_a_forged_form(ADDRESSES["pay link, a step"][0], written)
        assert "/pay/share/[secret]/decline" in written.getvalue()

    def test_is_distinguished_from_other_paths(self) -> None:
        for path in (
            f"/api/merchant/v1/checkouts/{SESSION}/capture",
            "/portal/checkouts",
            "/srv/checkout/lib/python3.11/site-packages/django/core/handlers/exception_reporting_3.py",
            "/pay/share",
        ):
            assert not redaction.is_secret_path(path) and redaction.blank_secrets(path) == path

    def test_has_a_rule_for_every_route(self) -> None:
        """Each route with a free text part is listed: its text is either secret or allowed in the log."""
        shown = {
            "admin/",  # contains primary keys, which operators may see
            "api/merchant/v1/",  # contains only UUIDs, in any spelling
            "api/sandbox/v1/",
            "mail/",  # contains file names, and exists only in the local environment
            "api/docs/",  # contains names of public files
        }
        free = [route for route in addresses.routes() if "<str:" in route or "(?P<" in route]
        unruled = [
            route
            for route in free
            if not route.startswith(tuple(shown)) and not route.startswith(redaction.SECRET_PATHS)
        ]
        assert unruled == []
        assert len(free) > 10


class TestBlanking:
    @pytest.mark.rule("secret.logs")
    @pytest.mark.parametrize(
        "text",
        [
            f"reverse for 'share' with {{'token': '{TOKEN}'}}",
            f"Cookie: sessionid={TOKEN}; b=1",
            f"Authorization: Bearer {TOKEN}",
            f"signing_secret=whsec_{TOKEN}",
            f'{{"client_secret": "{TOKEN}"}}',
            f"password={TOKEN}",
        ],
    )
    def test_recognises_a_secret_by_its_name(self, text: str) -> None:
        assert TOKEN not in redaction.blank_secrets(text)

    @pytest.mark.rule("secret.logs")
    def test_keeps_numeric_values_but_removes_numbers_in_texts(self) -> None:
        line = redaction.redact(
            None, "", {"amount": 4242424242424242, "said": "4242424242424242 +447700900123"}
        )
        assert line == {"amount": 4242424242424242, "said": "[card] [phone]"}

    @pytest.mark.parametrize(
        "shape",
        [
            "/",
            "/a1",
            "?a",
            "?a=",
            "pay/share/",
            "%2F",
            "token",
            "token=",
            "bearer ",
            "1 ",
            "+1",
            "'",
            "a",
            "/0-",
        ],
    )
    def test_costs_time_that_grows_about_linearly_with_the_text(self, shape: str) -> None:
        assert price.growth(redaction.blank_secrets, Filled(shape), 100_000) <= price.MAX_GROWTH


@pytest.mark.rule("secret.logs")
@examples(max_examples=300)
@given(strategies.from_regex(redaction._HARMLESS, fullmatch=True))
def test_texts_that_are_skipped_contain_nothing_to_remove(text: str) -> None:
    assert redaction.blank_secrets(text) == text
