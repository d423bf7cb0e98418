"""Counts browser reports about code that a page's content security policy blocked (rule card_page.reports).

Anyone can send reports, and some are false. The number of rows is therefore limited, and the only text that a row
contains from a sender is the name of a host.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from config.lib import batches, limits, quota, strict_json
from config.lib.strict_json import InvalidJson
from config.lib.web import address, bodies, origins
from hosted_page.models import CspReport

RETENTION = timedelta(days=30)  # how long a row is kept after its last report
MAX_BYTES = 16 * 1024  # maximum bytes of a request body
MAX_REPORTS = 20  # per request body; further reports are ignored
# The maximum number of rows with a host. If a new row needs room, the row with the fewest reports is deleted,
# and its reports are counted under OTHER.
MAX_ROWS = 200
OTHER, OUR_SERVICE = "other", "this service"
_CARD_FORM = re.compile(r"/bank/card/|/pay(?:/share/[^/]+|/g/[^/]+/\d+)?/card$|/pay/check$")
_PORTAL = re.compile(r"/(?:portal|accounts|join)(?:/|$)")
# The kinds of pages. Two kinds have a regular expression above. For the others, PAGES maps the beginning of a path to
# the kind.
CARD_FORM, PORTAL = "card form", "portal"
PAGES = {"/bank/challenge": "bank's question", "/pay": "hosted page", "/admin": "operators"}
DIRECTIVES = frozenset(
    (
        *("default-src", "script-src", "script-src-elem", "script-src-attr", "style-src", "style-src-elem"),
        *("style-src-attr", "img-src", "font-src", "connect-src", "frame-src", "child-src", "worker-src"),
        *("media-src", "object-src", "manifest-src", "base-uri", "form-action", "frame-ancestors"),
    )
)
KEYWORDS = frozenset(("inline", "eval", "wasm-eval", "data", "blob", "self", "trusted-types-policy"))
_EXTENSION = re.compile(r"[a-z-]*extension\b|about\b|chrome\b|resource\b|safari\b|moz\b", re.IGNORECASE)
MAX_HOST = 100  # characters
_HOST = re.compile(r"[a-z0-9._:-]+")
# If a label in a host name has a digit and at least this many characters, it might be a person's name or a secret.
LONG_LABEL = 12


class Violation(NamedTuple):
    """The key of a row: the kind of page, the directive, and the host or keyword that was blocked."""

    page: str
    directive: str
    blocked: str


class NotReports(Exception):
    """The body is not in a report format that browsers use."""


@csrf_exempt  # browsers send reports without a CSRF token
@require_POST
def receive_report(request: HttpRequest) -> HttpResponse:
    """Count the violations that a request reports. Return 204 for every well-formed request body."""
    if bodies.content_length(request.META) > MAX_BYTES:
        return _refuse(413, f"Send at most {MAX_BYTES} bytes.")
    if request.content_type not in READERS:
        return _refuse(415, f"Send {' or '.join(READERS)}.")
    networks = address.networks_of(address.caller_address(request))
    site = limits.Shared((networks.site,), quota.SITE_FACTOR) if networks.site else None
    if not limits.spend("csp_reports", networks.network, shared=site):
        return _refuse(429, "Send reports again in a minute.", {"Retry-After": "60"})
    try:
        violations = _read_violations(request)
    except NotReports as error:
        return _refuse(400, str(error))
    record(violations, timezone.now())
    return HttpResponse(status=204)


def _refuse(status: int, words: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(words, status=status, headers=headers, content_type="text/plain; charset=utf-8")


def _read_violations(request: HttpRequest) -> list[Violation]:
    """Return the reported violations on our pages, without those that browser extensions caused. Raises NotReports."""
    try:
        reports = READERS[request.content_type or ""](strict_json.parse(request.body))
    except InvalidJson as error:
        raise NotReports(f"The body is no JSON: {error}.") from None
    violations = (_counted_violation(report, request.get_host()) for report in reports)
    return [violation for violation in violations if violation is not None]


def _read_report_to(body: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield the page, directive, blocked address and source of each violation in a `report-to` body.

    The body is a list of reports of any type.
    """
    if not isinstance(body, list):
        raise NotReports("application/reports+json is a list of reports.")
    for report in body[:MAX_REPORTS]:
        if not isinstance(report, dict) or not isinstance(report.get("body"), dict):
            raise NotReports("Each report is an object with a body.")
        if report.get("type") == "csp-violation":
            yield _text_fields(
                report["body"], "documentURL", "effectiveDirective", "blockedURL", "sourceFile"
            )


def _read_report_uri(body: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield the page, directive, blocked address and source of the violation in a `report-uri` body.

    The body contains one report.
    """
    report = body.get("csp-report") if isinstance(body, dict) else None
    if not isinstance(report, dict):
        raise NotReports("application/csp-report is an object with csp-report.")
    names = ("document-uri", "effective-directive", "blocked-uri", "source-file")
    page, directive, blocked, source = _text_fields(report, *names)
    yield page, directive or _text_fields(report, "violated-directive")[0], blocked, source


READERS = {"application/reports+json": _read_report_to, "application/csp-report": _read_report_uri}


def _text_fields(report: Mapping[str, Any], *names: str) -> Any:
    return tuple(value if isinstance(value := report.get(name), str) else "" for name in names)


def _counted_violation(report: tuple[str, str, str, str], own_host: str) -> Violation | None:
    """Return the violation to count. Return None if an extension caused it, or if it is on another site's page."""
    page, directive, blocked, source = report
    if _EXTENSION.match(blocked) or _EXTENSION.match(source):
        return None
    try:
        parts = origins.split_url(page)
    except ValueError:
        return None
    if parts.netloc != own_host:
        return None
    name = directive.partition(" ")[0]
    return Violation(
        _page_kind(parts.path), name if name in DIRECTIVES else OTHER, _blocked_name(blocked, own_host)
    )


def _page_kind(path: str) -> str:
    if _CARD_FORM.match(path):
        return CARD_FORM
    if _PORTAL.match(path):
        return PORTAL
    return next((name for prefix, name in PAGES.items() if f"{path}/".startswith(f"{prefix}/")), OTHER)


def _blocked_name(blocked: str, own_host: str) -> str:
    """Return the keyword or host that was blocked. In a host, "*" replaces each label that looks random."""
    if blocked in KEYWORDS:
        return blocked
    blocked_host = origins.host_of(blocked)
    if blocked_host and blocked_host == origins.host_of(f"//{own_host}"):
        return OUR_SERVICE
    labels = ("*" if _looks_random(label) else label for label in blocked_host.split("."))
    return ".".join(labels)[:MAX_HOST] if _HOST.fullmatch(blocked_host) else OTHER


def _looks_random(label: str) -> bool:
    return len(label) >= LONG_LABEL and any(character.isdigit() for character in label)


def record(violations: Iterable[Violation], now: datetime) -> None:
    """Add each violation to the count in its row.

    If the table is full, a new host replaces the host with the fewest reports. A sender of invented hosts therefore
    cannot keep out a real host.
    """
    counts = Counter(violations)
    for violation in sorted(counts):
        if not _count_violation(violation, counts[violation], now):
            _add_row(violation, counts[violation], now)


def _count_violation(violation: Violation, count: int, now: datetime) -> bool:
    """Add the count to the row of a violation. Return whether the row exists."""
    rows = CspReport.objects.filter(**violation._asdict())
    return bool(rows.update(count=F("count") + count, last_seen=now))


@transaction.atomic(durable=True)
def _add_row(violation: Violation, count: int, now: datetime) -> None:
    quota.lock("csp_reports")
    if violation.blocked != OTHER and _host_rows().count() >= MAX_ROWS:
        rarest = _host_rows().order_by("count", "last_seen")[0]
        _insert_or_count(Violation(rarest.page, rarest.directive, OTHER), rarest.count, now)
        rarest.delete()
    _insert_or_count(violation, count, now)


def _insert_or_count(violation: Violation, count: int, now: datetime) -> None:
    if not _count_violation(violation, count, now):
        CspReport.objects.create(**violation._asdict(), first_seen=now, last_seen=now, count=count)


def _host_rows() -> QuerySet[CspReport]:
    return CspReport.objects.exclude(blocked=OTHER)


def delete_old() -> None:
    """Delete the rows for which no report has arrived for thirty days."""
    batches.delete(CspReport.objects.filter(last_seen__lt=timezone.now() - RETENTION))
