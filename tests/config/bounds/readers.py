"""The product's parsers for untrusted input, each as a function of a text."""

import base64
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import aiohttp
from aiohttp.http import HttpProcessingError
from django.contrib.staticfiles import finders
from django.core.exceptions import (
    DisallowedHost,
    SuspiciousOperation,
    TooManyFieldsSent,
    ValidationError,
)
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.multipartparser import MultiPartParserError
from django.middleware.csrf import CsrfViewMiddleware
from django.test import RequestFactory
from django.utils import translation
from django_htmx.middleware import HtmxDetails
from whitenoise.responders import StaticFile

from checkout.models import Checkout
from config.lib import cursor, redaction, strict_json
from config.lib.web import address, bodies, origins
from config.lib.web.cookies import CookieMiddleware
from config.urls import ApiUuid
from hosted_page import payer, summary
from hosted_page.group import free_items
from hosted_page.opt_in import consent, link
from hosted_page.page_security import check_page, reports
from hosted_page.sms import safe_names, stopped_numbers
from hosted_page.steps import typed_split
from hosted_page.steps.phone import InvalidPhone, parse_phone
from hosted_page.steps.split_form import SplitForm, clean_name
from payments import money, safe_answers
from payments.models import Merchant
from payments.provider import ForgedNotification
from payments.providers.sandbox import notifications
from portal import access, files
from portal.accounts import passkey_forms, passwords, sessions
from portal.deliveries import log
from portal.developer_docs import public_bodies
from portal.developer_docs import views as documentation
from portal.oauth import client_requests
from portal.orders import search, timeline
from portal.views import deliveries, frame
from tests import factories
from tests.config.bounds.shapes import ADDRESSES, ANSWERS, DOCUMENTS, PARTS, QUOTED, TEXTS, Filled
from tests.webhooks.receivers.test_kept_connections import read
from webhooks import connections, signing, targets, transport
from webhooks.models import Delivery, Event

# Maximum lengths in characters: of a header, a request line, a URL, a form, a response, and an API call's body.
HEADER, LINE, ADDRESS, FORM, ANSWER, BODY = 7_900, 4_000, 2_048, 32 * 1024, 32 * 1024, 256 * 1024
NOBODY, UTC = UUID(int=0), ZoneInfo("UTC")


class Reader(NamedTuple):
    """A parser, the maximum length of its text, and the texts with which it is tested."""

    act: Callable[[str], object]
    size: int = HEADER
    texts: tuple[Filled, ...] = TEXTS


def _suppress(refusal: type[Exception], parse: Callable[[str], object]) -> Callable[[str], None]:
    """Return a function that runs the parser and ignores the error that it raises for an invalid text."""

    def read_or_refuse(text: str) -> None:
        with contextlib.suppress(refusal):
            parse(text)

    return read_or_refuse


def _request(*, method: str = "GET", is_secure: bool = False, **headers: str) -> Any:
    """Return a request whose header bytes are decoded as Latin-1, as a WSGI server decodes them."""
    names = {name.replace("_", "-"): value.encode().decode("latin-1") for name, value in headers.items()}
    return RequestFactory(REMOTE_ADDR="10.0.0.1").generic(method, "/", secure=is_secure, headers=names)


def _response(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(len(request.COOKIES)))


def _content_type(text: str) -> None:
    """Parse a content type as the service does.

    Our WSGI application shortens the header first, because Django's parser is slow for long parameters.
    """
    for kind in ("multipart/form-data;", "text/plain;", ""):
        known = bodies._content_type({"CONTENT_TYPE": f"{kind}{text}"})
        HttpRequest()._set_content_type_params({"CONTENT_TYPE": known})  # type: ignore[attr-defined]


def _host(text: str) -> None:
    request = HttpRequest()
    request.META["HTTP_HOST"] = text
    with contextlib.suppress(DisallowedHost):
        request.get_host()


def _csrf(text: str) -> None:
    """Run the CSRF check with the text as the origin, as the referrer, and as both cookie and header."""
    for headers in (
        {"origin": text},
        {"referer": text},
        {"cookie": f"csrftoken={text}", "x_csrftoken": text},
    ):
        request = _request(method="POST", is_secure=True, **headers)
        middleware = CsrfViewMiddleware(_response)
        middleware.process_request(request)
        middleware.process_view(request, _response, (), {})


def _basic(text: str) -> None:
    encoded = base64.b64encode(text.encode(errors="replace")).decode()
    with contextlib.suppress(client_requests.InvalidRequest):
        client_requests._read_basic(_request(authorization=f"Basic {encoded}"))
    with contextlib.suppress(client_requests.InvalidRequest):
        client_requests._read_basic(_request(authorization=f"Basic {text}"))


def _password(text: str) -> None:
    for validator in (passwords.CommonPasswordValidator(), passwords.ContextWordsValidator()):
        with contextlib.suppress(ValidationError):
            validator.validate(text)


def _static(text: str) -> None:
    names = ("IF_NONE_MATCH", "IF_MODIFIED_SINCE", "ACCEPT_ENCODING", "RANGE")
    answer = _FILE.get_response("HEAD", {f"HTTP_{name}": text for name in names})
    assert answer.status


_FILE = StaticFile(finders.find("css/tokens.css"), [("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")])


def _page_around(text: str) -> None:
    request = HttpRequest()
    request.META |= {"HTTP_HX_CURRENT_URL": text.encode().decode("latin-1"), "HTTP_HOST": "127.0.0.1"}
    request.META["HTTP_HX_CURRENT_URL_URI_AUTOENCODED"] = "true"
    access._page_around(HtmxDetails(request))


def _referring_page(text: str) -> None:
    for referrer in (text, f"http://127.0.0.1/portal/{text}"):
        frame._referring_page(_request(host="127.0.0.1", referer=referrer))


def _parts(text: str) -> None:
    request: Any = RequestFactory().generic("POST", "/", text, "multipart/form-data; boundary=x")
    with contextlib.suppress(SuspiciousOperation, MultiPartParserError):
        len(request.POST)


def _split(text: str) -> None:
    typed, order = QueryDict(mutable=True), Checkout(amount=9000, currency="GBP")
    vars(order)["lines"] = [["ref", "Ticket", 4, 2250, "GBP", "ticket", None]]
    for choice in ("equal", "own", "item"):
        typed.update({"split": choice, "people": text, "your_name": text, "name": text, "amount": text})
        typed.update({"units-0": text})
        SplitForm(typed, order).is_valid()
    free_items.chosen_units(typed, order)


def _answer(text: str) -> None:
    packets = [text[start : start + 500].encode() for start in range(0, len(text), 500)]
    with contextlib.suppress(aiohttp.ClientError, HttpProcessingError):
        transport.run(read(packets, loses=True))


def _provider_fields(text: str) -> None:
    """Read the text as each field of a provider's response. Providers state no maximum length for a field."""
    for readers in (safe_answers.OUTCOME, safe_answers.REFUND, safe_answers.DISPUTE):
        for read_field in readers.values():
            read_field(text)


def _report(text: str) -> None:
    for report in ((text, text, text, text), (f"http://testserver/{text}", text, f"https://{text}", "")):
        reports._counted_violation(report, "testserver")


def _in_the_log(text: str) -> None:
    delivery = Delivery(event=Event(body=text.encode()))
    log._indent_json(text.encode())
    log._curl_command(text, delivery, None)


READERS = {
    "JSON": Reader(
        _suppress(strict_json.InvalidJson, lambda text: strict_json.parse(text.encode())), BODY, DOCUMENTS
    ),
    "cookies": Reader(lambda text: CookieMiddleware(_response)(_request(cookie=text)), texts=TEXTS + QUOTED),
    "a payer's cookie": Reader(
        lambda text: payer.customer_of(_request(cookie=f"payer_{NOBODY.hex}={text}"), NOBODY)
    ),
    "a way to stop": Reader(_suppress(Http404, stopped_numbers._read_link_token)),
    "a password": Reader(_password),
    "a split's cookie": Reader(
        lambda text: typed_split.typed_values(_request(cookie=f"payer_typed={text}"), Checkout(lead=None))
    ),
    "a language": Reader(lambda text: translation.get_language_from_request(_request(accept_language=text))),
    "a language's cookie": Reader(
        lambda text: translation.get_language_from_request(_request(cookie=f"language={text}"))
    ),
    "Basic": Reader(_basic),
    "X-Forwarded-For": Reader(lambda text: address.caller_address(_request(x_forwarded_for=text))),
    "an address": Reader(address.networks_of),
    "User-Agent": Reader(sessions.browser_in_words),
    "Content-Length": Reader(lambda text: bodies.content_length({"CONTENT_LENGTH": text})),
    "Content-Type": Reader(_content_type, texts=TEXTS + QUOTED),
    "Host": Reader(_host),
    "CSRF": Reader(_csrf, texts=ADDRESSES),
    "If-Modified-Since, Range, Accept-Encoding": Reader(_static),
    "Accept": Reader(lambda text: documentation.prefers_markdown(_request(accept=text))),
    "Accept-Encoding": Reader(public_bodies.accepts_gzip),
    "HX-Current-URL": Reader(_page_around, texts=ADDRESSES),
    "Referer": Reader(_referring_page, texts=TEXTS + ADDRESSES),
    "a query": Reader(_suppress(TooManyFieldsSent, QueryDict), LINE),
    "a form": Reader(_suppress(TooManyFieldsSent, QueryDict), FORM),
    "a form of parts": Reader(_parts, FORM, PARTS),
    "a credential": Reader(
        _suppress(ValidationError, passkey_forms.CredentialField().clean), passkey_forms.LONGEST, DOCUMENTS
    ),
    "an id": Reader(ApiUuid().to_python),
    "a typed id": Reader(search.parse_uuid),
    "a typed moment": Reader(deliveries._parse_moment),
    "a split": Reader(_split),
    "a name": Reader(clean_name),
    "a name in a text message": Reader(lambda text: safe_names.safe_name(clean_name(text))),
    "an amount": Reader(lambda text: money.parse(text, "GBP")),
    "a phone": Reader(_suppress(InvalidPhone, lambda text: parse_phone(text, Merchant(country="GB")))),
    "an e-mail": Reader(_suppress(consent.InvalidEmail, consent.parse_email), 320),
    "a long e-mail": Reader(_suppress(consent.InvalidEmail, consent.parse_email)),
    "an opt-in link": Reader(_suppress(Http404, link._read_link)),
    "a cursor": Reader(
        _suppress(cursor.InvalidCursor, lambda text: cursor.read_cursor(text, "log", *cursor._PLACE))
    ),
    "a timeline's cursor": Reader(lambda text: timeline._parse_cursor(Checkout(), text)),
    "an origin": Reader(origins.origin_of, ADDRESS, TEXTS + ADDRESSES),
    "a webhook's address": Reader(
        _suppress(targets.TargetRefused, lambda text: targets.check_url(text, allow_loopback=False)),
        ADDRESS,
        TEXTS + ADDRESSES,
    ),
    "the bank's signature": Reader(
        _suppress(ForgedNotification, lambda text: notifications.read_message(text, text.encode()))
    ),
    "our signature": Reader(
        _suppress(signing.VerificationError, lambda text: signing.verify(text, text.encode(), ["whsec_"], 0))
    ),
    "our envelope": Reader(
        _suppress(signing.VerificationError, lambda text: signing._parse_envelope(text.encode()))
    ),
    "a receiver's answer": Reader(_answer, ANSWER, ANSWERS),
    "a receiver's words": Reader(lambda text: transport._safe_text(text.encode()), connections.ANSWER_BYTES),
    "a provider's words": Reader(_provider_fields),
    "a cell of a file": Reader(lambda text: files.csv_lines([[text]])),
    "an event in the portal's log": Reader(_in_the_log),
    "a ticket's day": Reader(
        lambda text: summary._item_date(factories.line(custom_data={"event_start": text}), UTC)
    ),
    "a browser's report": Reader(_report, texts=TEXTS + ADDRESSES),
    "a check's address": Reader(_suppress(Http404, check_page._step_of_address), LINE),
    "a line of the log": Reader(redaction.blank_secrets),
}
# Each module that parses untrusted input, and the name of the reader that tests the module.
PARSED = {
    "config/lib/web/address.py": "X-Forwarded-For",
    "config/lib/cursor.py": "a cursor",
    "config/lib/api/fields.py": "a ticket's day",
    "config/lib/web/origins.py": "an origin",
    "config/lib/strict_json.py": "JSON",
    "config/merchant_api.py": "JSON",
    "portal/accounts/passwords.py": "a password",
    "hosted_page/steps/card.py": "a payer's cookie",
    "hosted_page/steps/typed_split.py": "a split's cookie",
    "hosted_page/sms/stopped_numbers.py": "a way to stop",
    "hosted_page/sms/safe_names.py": "a name in a text message",
    "hosted_page/opt_in/consent.py": "an e-mail",
    "hosted_page/opt_in/link.py": "an opt-in link",
    "hosted_page/page_security/check_page.py": "a check's address",
    "hosted_page/page_security/reports.py": "a browser's report",
    "hosted_page/payer.py": "a payer's cookie",
    "checkout/customers/numbers.py": "a phone",
    "hosted_page/summary.py": "a ticket's day",
    "payments/providers/sandbox/notifications.py": "the bank's signature",
    "payments/provider_fields.py": "a provider's words",
    "portal/files.py": "a cell of a file",
    "portal/deliveries/log.py": "an event in the portal's log",
    "portal/accounts/passkey_forms.py": "a credential",
    "portal/oauth/client_requests.py": "Basic",
    "portal/orders/timeline.py": "a timeline's cursor",
    "portal/views/deliveries.py": "a typed moment",
    "portal/views/frame.py": "Referer",
    "webhooks/connections.py": "a receiver's answer",
    "webhooks/signing.py": "our envelope",
    "webhooks/targets.py": "a webhook's address",
}
# These modules parse only trusted data: our rows, our pages, and numbers and addresses that were checked.
WRITTEN_BY_US = {
    "checkout/api/detailed_reads.py",
    "config/lib/api/responses.py",
    "config/monitoring/certificates.py",
    "config/variables/checks.py",  # the operator's variables
    "config/variables/value_types.py",
    "payments/discrepancies/facts.py",
    "portal/backoffice/lists.py",
    "portal/backoffice/record_heads/webhooks.py",
    "portal/mail/outbox.py",
    "webhooks/admin.py",  # the body of an event
    "hosted_page/page_security/daily_check.py",
    "hosted_page/privacy/erasure.py",
    "hosted_page/sms/countries.py",
    "hosted_page/steps/codes.py",
    "portal/oauth/token.py",
    "portal/orders/outside_actions.py",
    "portal/trials/checklist_page.py",
    "webhooks/transport.py",
}
