"""The payer's cookies: the sign-in to a checkout or share, and the browser's random name.

A sign-in is a row, and a signed cookie names it. The cookie is useless without the row, so a sign-out is real. The row
is useless without SECRET_KEY, so a copy of the database signs no one in. Rule sign_in.session.
"""

import re
import secrets
import time
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from checkout.models import Customer
from config.lib import batches, clock, crypto
from config.lib.prepared import Prepared
from hosted_page.models import PayerSignIn

LIFE = 15 * 60  # seconds, from the last signature
LONGEST = 2 * 60 * 60  # seconds, from the sign-in
AFTERWARDS = 60 * 60  # seconds in which the page says that a sign-in has ended (rule sign_in.said)
KEPT = timedelta(hours=4)  # a row: longer than LONGEST and AFTERWARDS together
SIGN_INS = 5  # without a code, of a person at one checkout or share: the newest stay
BROWSER, SHOWN_CODE = "browser", "code"
# A browser's name as token_urlsafe(16) makes it: what else comes may fit into no header.
_NAME = re.compile(r"[A-Za-z0-9_-]{22}")
_SUBJECT = re.compile(r"[0-9a-f]{32}")
SALT = "payer sign-in"


def customer_of(request: HttpRequest, subject: UUID) -> UUID | None:
    """Return the id of the person signed in for this checkout or share in this browser, None if no one is."""
    found = _signed_in(request, subject)
    return found.row.customer_uuid if found else None


def is_proven(request: HttpRequest, subject: UUID) -> bool:
    """Return whether the person signed in has entered a code in this visit, and was not remembered."""
    found = _signed_in(request, subject)
    return found is not None and found.row.is_proven


def signed_out(request: HttpRequest, subject: UUID) -> UUID | None:
    """Return the person whose sign-in here has reached its time limit, None for any other end and if one is valid."""
    found = _found(request, subject)
    return found.row.customer_uuid if found and not found.is_valid() else None


def has_reached_longest(request: HttpRequest, subject: UUID) -> bool:
    """Return whether the sign-in here ends or has ended two hours after it began, and not by 15 idle minutes."""
    found = _found(request, subject)
    return found is not None and found.longest_until < found.signed_at + LIFE


def seconds_left(request: HttpRequest, subject: UUID, *, prolonged: bool = False) -> int:
    """Return how long the valid sign-in here still lasts; with `prolonged`, how long it would if prolonged now."""
    found = _signed_in(request, subject)
    return max(0, round(found.until(prolonged=prolonged) - time.time())) if found else 0


class _Found(NamedTuple):
    """A sign-in that a cookie names, when the cookie was signed, and when the two hours end, in seconds."""

    row: PayerSignIn
    signed_at: int
    longest_until: float

    def until(self, *, prolonged: bool = False) -> float:
        return min(LIFE + (time.time() if prolonged else self.signed_at), self.longest_until)

    def is_valid(self) -> bool:
        return time.time() <= self.until()


def _signed_in(request: HttpRequest, subject: UUID) -> _Found | None:
    found = _found(request, subject)
    return found if found and found.is_valid() else None


def _found(request: HttpRequest, subject: UUID) -> _Found | None:
    """Return the sign-in that the cookie of a checkout or share names, None without one, or an hour after its end.

    A page asks eight times who is signed in: a request opens each cookie and reads each row once.
    """
    known: dict[UUID, _Found | None] = request.__dict__.setdefault("payer_sign_ins", {})
    if subject not in known:
        known[subject] = _look_up(request, subject)
    found = known[subject]
    return found if found and time.time() - found.signed_at <= AFTERWARDS else None


def _look_up(request: HttpRequest, subject: UUID) -> _Found | None:
    """Read the row that the cookie names. A cookie that is forged or too old costs no query."""
    cookie = request.COOKIES.get(cookie_name(subject.hex), "")
    sign_in = _open(cookie, subject, max_age=AFTERWARDS)
    row = _ROW.first(sign_in, subject) if sign_in else None
    if row is None:
        return None
    age = (row.read_at - row.began_at).total_seconds()
    return _Found(row, _signed_at(cookie), time.time() + LONGEST - age)


def _row(sign_in: UUID, subject: UUID) -> QuerySet[PayerSignIn]:
    """Return the sign-in unless its person is erased: an erasure may commit just before the row does."""
    known = Customer.objects.filter(pk=OuterRef("customer_uuid"), erased_at=None)
    return PayerSignIn.objects.filter(Exists(known), pk=sign_in, subject=subject)


_ROW = Prepared(_row, UUID, UUID, read_at="read_at")


def _open(cookie: str, subject: UUID, *, max_age: int | None = None) -> UUID | None:
    """Return the id of the sign-in that a cookie names for the subject, None if we have not signed that."""
    try:
        subject_hex, sign_in_hex = signing.loads(cookie, salt=SALT, max_age=max_age)
    except signing.BadSignature:
        return None
    return UUID(sign_in_hex) if subject_hex == subject.hex else None


def _signed_at(cookie: str) -> int:
    """Return when a cookie was signed, as Django's signer writes it."""
    return signing.b62_decode(cookie.rsplit(":", 2)[1])


def begin(subject: UUID, customer_uuid: UUID, *, is_proven: bool) -> PayerSignIn:
    """Insert a sign-in, which is valid once `give` has given its cookie to a browser.

    A person without a code can begin one with each request: only their newest few stay.
    """
    made = PayerSignIn(subject=subject, customer_uuid=customer_uuid, is_proven=is_proven, began_at=Now())
    made.save(force_insert=True)
    if not is_proven:
        of_person = PayerSignIn.objects.filter(customer_uuid=customer_uuid, subject=subject, is_proven=False)
        older = list(of_person.order_by("-pk").values_list("pk", flat=True)[SIGN_INS:])
        PayerSignIn.objects.filter(pk__in=older).delete()
    return made


def give(request: HttpRequest, response: HttpResponse, sign_in: PayerSignIn) -> None:
    """Sign the browser in for fifteen minutes, and end the sign-in that it had for the same subject."""
    _end(request, sign_in.subject)
    _sign(response, sign_in.subject, sign_in.pk)


def prolong(request: HttpRequest, response: HttpResponse, subject: UUID) -> None:
    """Let a valid sign-in last for another fifteen minutes, and never beyond two hours in all."""
    if found := _signed_in(request, subject):
        _sign(response, subject, found.row.pk)


def _sign(response: HttpResponse, subject: UUID, sign_in: UUID) -> None:
    value = signing.dumps([subject.hex, sign_in.hex], salt=SALT)
    put(response, cookie_name(subject.hex), value, AFTERWARDS)


def sign_out(request: HttpRequest, response: HttpResponse, subject: UUID) -> None:
    """Sign the person out of this checkout or share, in every browser that has a copy of this one's cookie."""
    _end(request, subject)
    response.delete_cookie(cookie_name(subject.hex), samesite="Lax")


def _end(request: HttpRequest, subject: UUID) -> None:
    """Delete the sign-in that the browser has, however old its cookie is: a copy may have been prolonged."""
    sign_in = _open(request.COOKIES.get(cookie_name(subject.hex), ""), subject)
    if sign_in is not None:
        PayerSignIn.objects.filter(pk=sign_in).delete()
        request.__dict__.setdefault("payer_sign_ins", {})[subject] = None


def end_remembered(request: HttpRequest, subject: UUID) -> None:
    """Delete this browser's sign-in to the subject, and those to any other that it was given without a code."""
    sign_ins = [_open(request.COOKIES.get(cookie_name(other.hex), ""), other) for other in _subjects(request)]
    ours = PayerSignIn.objects.filter(pk__in=[sign_in for sign_in in sign_ins if sign_in])
    ours.filter(Q(is_proven=False) | Q(subject=subject)).delete()


def _subjects(request: HttpRequest) -> list[UUID]:
    """Return the checkouts and shares for which the browser sends a cookie."""
    start = cookie_name("")
    named = [name.removeprefix(start) for name in request.COOKIES if name.startswith(start)]
    return [UUID(name) for name in named if _SUBJECT.fullmatch(name)]


def delete_old() -> None:
    """Delete sign-ins that have ended and that no page speaks of any more."""
    batches.delete(PayerSignIn.objects.filter(pk__lt=clock.first_id(clock.now() - KEPT)))


def browser_of(request: HttpRequest) -> str:
    """Return this browser's random name, a new one if it has none yet."""
    return _name(request) or secrets.token_urlsafe(16)


def claim_of(request: HttpRequest) -> str:
    """Return the digest by which a share is known that this browser has taken, "" if it has no name yet."""
    name = _name(request)
    return crypto.digest(name) if name else ""


def _name(request: HttpRequest) -> str:
    """Return the name that we have given this browser, "" if it has none, or one that is not of our making."""
    name = request.COOKIES.get(cookie_name(BROWSER), "")
    return name if _NAME.fullmatch(name) else ""


def name_browser(response: HttpResponse, browser: str) -> None:
    """Keep the browser's name for a day."""
    put(response, cookie_name(BROWSER), browser, 86_400)


def await_code(response: HttpResponse, browser: str, shown_code: str) -> None:
    """Keep the browser's name for a day, and for the page a code that was not sent (local and sandbox)."""
    name_browser(response, browser)
    if shown_code:
        put(response, cookie_name(SHOWN_CODE), signing.dumps(shown_code, salt="shown-code"), 600)


def shown_code(request: HttpRequest) -> str:
    """Return the code to show on the page, "" if it was sent."""
    try:
        code: str = signing.loads(
            request.COOKIES.get(cookie_name(SHOWN_CODE), ""), salt="shown-code", max_age=600
        )
    except signing.BadSignature:
        return ""
    return code


def cookie_name(what: str) -> str:
    """Return the name of a payer's cookie; where https is, it binds the cookie to this host."""
    return f"{settings.COOKIE_PREFIX}payer_{what}"


def put(response: HttpResponse, name: str, value: str, seconds: int) -> None:
    """Set a cookie that no script reads and no other site's form sends."""
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=not settings.LOCAL, httponly=True, samesite="Lax"
    )
