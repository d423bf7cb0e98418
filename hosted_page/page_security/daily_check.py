"""The daily check that browsers get exactly the payment pages, headers and scripts of this release.

The check fetches the live pages through all systems between the service and a payer: the proxies, a CDN, and
the host of the static files. It compares the pages with the response of the application in this process, with
the script inventory, and with the scripts' source files. Rule card_page.daily_check.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit
from wsgiref.util import setup_testing_defaults

import structlog
from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.wsgi import WSGIRequest
from django.templatetags.static import static

from config.lib import clock
from config.lib.deadline import Deadline
from config.lib.web import http, origins, static_files
from hosted_page.page_security import check_page, inventory, page_content
from hosted_page.page_security.inventory import PageScript
from payments.discrepancies import kinds, reporting
from payments.provider import CardPage, ProviderUnreachable

log = structlog.get_logger("hosted_page.page_security.daily_check")
SECONDS, SECONDS_EACH = 60.0, 10.0  # for the whole check, and for each request
MAX_BYTES = 256 * 1024  # maximum size of a response
MAX_CHANGES, MAX_LENGTH = 20, 300  # maximum listed changes, and characters of each
# The headers that decide which code a page runs, and who may embed or read the page. If the service does not
# send such a header, the live page must not have it either.
HEADERS = (
    "Content-Security-Policy",
    "Content-Security-Policy-Report-Only",
    "Reporting-Endpoints",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "Referrer-Policy",
    "Permissions-Policy",
    "Cross-Origin-Opener-Policy",
    "Access-Control-Allow-Origin",
    "Cache-Control",
    "Content-Type",
    "Link",
    "Refresh",
)
REQUEST_HEADERS = {"Accept-Encoding": "identity", "Accept-Language": "en-GB", "User-Agent": "card-page-check"}


@dataclass
class Findings:
    """The result of a check: the requested paths, the differences, and the addresses that did not answer."""

    paths: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)


def run() -> Findings:
    """Check the live pages. Report one discrepancy for all changes, and one for all addresses that did not answer."""
    findings = check()
    log.info("card page checked", addresses=len(findings.paths), changes=len(findings.changes))
    if findings.changes:
        changes = [change[:MAX_LENGTH] for change in sorted(findings.changes)[:MAX_CHANGES]]
        # The subject depends on the changes. If a later check finds different changes, they are therefore
        # reported as a separate discrepancy, even if the earlier one is still open.
        subject = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(changes))
        reporting.report(kinds.CARD_PAGE_CHANGED, subject, changes=changes)
    if findings.unanswered:
        reporting.report(kinds.CARD_PAGE_UNCHECKED, None, unanswered=findings.unanswered[:MAX_CHANGES])
    else:
        note = "A later check got all answers."
        reporting.close_resolved(kinds.CARD_PAGE_UNCHECKED, None, note=note, now=clock.now())
    return findings


def check() -> Findings:
    """Compare the live pages with this release."""
    live_check = _Check(Deadline.after(SECONDS))
    live_check.page("hosted_page/phone.html", check_page.check_address(check_page.FIRST_STEP))
    try:
        page = check_page.card_page()
    except ProviderUnreachable:
        live_check.findings.unanswered.append("The provider gave no card page.")
    else:
        live_check.card_page(page)
    for script in inventory.SCRIPTS:
        if script.is_ours:
            live_check.script(script)
    return live_check.findings


class _Check:
    """One check. It ends when its time is over, even if an address does not answer."""

    def __init__(self, deadline: Deadline) -> None:
        self.findings = Findings()
        self._deadline = deadline

    def card_page(self, page: str | CardPage) -> None:
        """Check the card page if it is on our host. The provider checks a card page on its own host."""
        if isinstance(page, CardPage):
            self.page(page.template, check_page.check_address(check_page.CARD))
        elif origins.origin_of(page) == origins.origin_of(settings.BASE_URL):
            self.page("bank/card.html", page)

    def page(self, template: str, address: str) -> None:
        """Check the headers of one page, and the elements on it that can run code."""
        response = self._fetch(address)
        if response is None:
            return
        name = inventory.PAGES[template]
        self._add(_header_changes(name, response.headers, _expected_headers(address)))
        self._add(_code_changes(name, template, response.body.decode(errors="replace")))

    def script(self, script: PageScript) -> None:
        """Check that browsers get exactly the bytes of a script's source file."""
        response = self._fetch(urljoin(settings.CHECKOUT_PAGE_URL, static(script.name)))
        if response is not None and response.body != static_files.source_bytes(script.name):
            digest = static_files.integrity(response.body)
            self._add([f"{script.name} is delivered with other contents: {digest}."])

    def _fetch(self, address: str) -> http.Response | None:
        """Fetch an address. Return the response, or record the problem and return None.

        Any status other than 200 is a problem. Redirects are not followed.
        """
        path = urlsplit(address).path
        self.findings.paths.append(path)
        try:
            seconds = self._deadline.remaining(SECONDS_EACH)
            response = http.request("GET", address, b"", REQUEST_HEADERS, seconds=seconds, largest=MAX_BYTES)
        except http.NoAnswer as error:
            self.findings.unanswered.append(f"{path}: {error}.")
            return None
        if response.status == HTTPStatus.OK:
            return response
        is_broken = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        (self.findings.unanswered if is_broken else self.findings.changes).append(
            f"{path} answers {response.status} instead of 200."
        )
        return None

    def _add(self, changes: Iterator[str] | list[str]) -> None:
        self.findings.changes.extend(changes)


def _header_changes(page: str, live: Mapping[str, str], own: Mapping[str, str]) -> Iterator[str]:
    for name in HEADERS:
        actual, expected = _header_values(live, name), _header_values(own, name)
        if actual != expected:
            yield f"{page}: {name} is {actual or 'missing'}, not {expected or 'missing'}."


def _header_values(headers: Mapping[str, str], name: str) -> str:
    """Return the value of a header, or all its values if it was sent more than once."""
    return ", ".join(value for header, value in headers.items() if header.lower() == name.lower())


def _code_changes(page: str, template: str, text: str) -> Iterator[str]:
    content = page_content.read_content(text)
    yield from (f"{page} has {other}." for other in content.other)
    expected = {
        _script_address(script): _script_integrity(script) for script in inventory.scripts_of(template)
    }
    for loaded in content.scripts:
        if loaded.address not in expected:
            yield f"{page} loads {loaded.address}, which is not in the inventory."
        elif loaded.integrity != expected[loaded.address]:
            yield f"{page} loads {loaded.address} with the integrity {loaded.integrity or 'missing'}."
    for missing in sorted(expected.keys() - {loaded.address for loaded in content.scripts}):
        yield f"{page} does not load {missing}."


def _script_address(script: PageScript) -> str:
    return static(script.name) if script.is_ours else settings.STRIPE_SCRIPT


def _script_integrity(script: PageScript) -> str:
    content = static_files.source_bytes(script.name) if script.is_ours else None
    return "" if content is None else static_files.integrity(content)


def _expected_headers(address: str) -> Mapping[str, str]:
    """Return the headers with which this process itself answers a request for the address. The network is not used."""
    parts = urlsplit(address)
    environ: dict[str, Any] = {
        "PATH_INFO": parts.path,
        "QUERY_STRING": parts.query,
        "HTTP_HOST": parts.netloc,
        "HTTP_X_FORWARDED_PROTO": parts.scheme,
        "wsgi.url_scheme": parts.scheme,
        "REMOTE_ADDR": "127.0.0.1",
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in REQUEST_HEADERS.items()},
    }
    setup_testing_defaults(environ)  # adds the standard library's default values for a GET request
    return _build_application().get_response(WSGIRequest(environ)).headers


@cache
def _build_application() -> BaseHandler:
    """Return the application with its middleware, but without the request handler of a web server.

    Such a handler sends signals that would close this process's database connection.
    """
    handler = BaseHandler()
    handler.load_middleware()
    return handler
