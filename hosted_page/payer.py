"""Reads and sets the payer's cookies: the sign-in to a checkout or share, and the browser's random name.

A sign-in is a database row, and a signed cookie contains its id. When the payer signs out, the row is
deleted, so every copy of the cookie becomes invalid. The cookie is signed with SECRET_KEY, so a copy of the
database is not enough to sign in. Rule sign_in.session.
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

LIFE = 15 * 60  # seconds from the last signature of the cookie until the sign-in ends
LONGEST = 2 * 60 * 60  # seconds from the beginning of the sign-in until it ends at the latest
# Seconds from the last signature of the cookie until it expires. Until then, pages can say that the sign-in
# has ended (rule sign_in.said).
NOTICE_SECONDS = 60 * 60
RETENTION = timedelta(hours=4)  # how long a row is kept; must exceed LONGEST and NOTICE_SECONDS together
SIGN_INS = 5  # maximum sign-ins without a code, per person and checkout or share; older ones are deleted
BROWSER, SHOWN_CODE = "browser", "code"
# The format of the names that token_urlsafe(16) makes. Names in any other format are ignored, because a
# forged name might have characters that are invalid in a header.
_NAME = re.compile(r"[A-Za-z0-9_-]{22}")
_SUBJECT = re.compile(r"[0-9a-f]{32}")
SALT = "payer sign-in"


def customer_of(request: HttpRequest, subject: UUID) -> UUID | None:
    """Return the id of the person who is signed in here, or None if no one is signed in.

    A sign-in is valid for one checkout or share, `subject`, in one browser.
    """
    sign_in = _valid_sign_in(request, subject)
    return sign_in.row.customer_uuid if sign_in else None


def is_proven(request: HttpRequest, subject: UUID) -> bool:
    """Return whether the signed-in person entered a code during this visit, and was not only remembered."""
    sign_in = _valid_sign_in(request, subject)
    return sign_in is not None and sign_in.row.is_proven


def timed_out_customer(request: HttpRequest, subject: UUID) -> UUID | None:
    """Return the id of the person whose sign-in here has reached its time limit.

    Return None if the sign-in is still valid, if it ended for another reason, or if it ended too long ago.
    """
    sign_in = _find_sign_in(request, subject)
    return sign_in.row.customer_uuid if sign_in and not sign_in.is_valid() else None


def has_reached_maximum(request: HttpRequest, subject: UUID) -> bool:
    """Return whether this sign-in ends, or has ended, because of the two-hour limit.

    If not, it ends because the person is inactive for 15 minutes.
    """
    sign_in = _find_sign_in(request, subject)
    return sign_in is not None and sign_in.longest_until < sign_in.signed_at + LIFE


def seconds_left(request: HttpRequest, subject: UUID, *, prolonged: bool = False) -> int:
    """Return how many seconds the sign-in in this browser remains valid, or 0 if it is not valid.

    With `prolonged`, return the seconds that would remain if the sign-in were extended now.
    """
    sign_in = _valid_sign_in(request, subject)
    return max(0, round(sign_in.ends_at(prolonged=prolonged) - time.time())) if sign_in else 0


class _SignIn(NamedTuple):
    """A sign-in that a cookie names.

    `signed_at` is the time when the cookie was signed. `longest_until` is when the two-hour limit is reached.
    Both are Unix times.
    """

    row: PayerSignIn
    signed_at: int
    longest_until: float

    def ends_at(self, *, prolonged: bool = False) -> float:
        return min(LIFE + (time.time() if prolonged else self.signed_at), self.longest_until)

    def is_valid(self) -> bool:
        return time.time() <= self.ends_at()


def _valid_sign_in(request: HttpRequest, subject: UUID) -> _SignIn | None:
    sign_in = _find_sign_in(request, subject)
    return sign_in if sign_in and sign_in.is_valid() else None


def _find_sign_in(request: HttpRequest, subject: UUID) -> _SignIn | None:
    """Return the sign-in that the cookie of a checkout or share names, valid or not.

    Return None if there is no such sign-in, or if the cookie was signed more than an hour ago. The result is
    cached in the request, because one page needs it eight times.
    """
    cached: dict[UUID, _SignIn | None] = request.__dict__.setdefault("payer_sign_ins", {})
    if subject not in cached:
        cached[subject] = _look_up(request, subject)
    sign_in = cached[subject]
    return sign_in if sign_in and time.time() - sign_in.signed_at <= NOTICE_SECONDS else None


def _look_up(request: HttpRequest, subject: UUID) -> _SignIn | None:
    """Read the row that the cookie names. If the cookie is forged or too old, return None without a query."""
    cookie = request.COOKIES.get(cookie_name(subject.hex), "")
    sign_in_uuid = _read_cookie(cookie, subject, max_age=NOTICE_SECONDS)
    row = _SIGN_IN.first(sign_in_uuid, subject) if sign_in_uuid else None
    if row is None:
        return None
    age = (row.read_at - row.began_at).total_seconds()
    return _SignIn(row, _signed_at(cookie), time.time() + LONGEST - age)


def _query_sign_in(sign_in_uuid: UUID, subject: UUID) -> QuerySet[PayerSignIn]:
    """Return the query for a sign-in. It finds no sign-in of an erased person.

    Without this condition, a sign-in that is inserted just after the person's erasure would be valid.
    """
    not_erased = Customer.objects.filter(pk=OuterRef("customer_uuid"), erased_at=None)
    return PayerSignIn.objects.filter(Exists(not_erased), pk=sign_in_uuid, subject=subject)


_SIGN_IN = Prepared(_query_sign_in, UUID, UUID, read_at="read_at")


def _read_cookie(cookie: str, subject: UUID, *, max_age: int | None = None) -> UUID | None:
    """Return the id of the sign-in in a cookie.

    Return None if the cookie is forged, too old, or belongs to another subject.
    """
    try:
        subject_hex, sign_in_hex = signing.loads(cookie, salt=SALT, max_age=max_age)
    except signing.BadSignature:
        return None
    return UUID(sign_in_hex) if subject_hex == subject.hex else None


def _signed_at(cookie: str) -> int:
    """Return when a cookie was signed. Django's signer writes this timestamp into the cookie."""
    return signing.b62_decode(cookie.rsplit(":", 2)[1])


def begin_sign_in(subject: UUID, customer_uuid: UUID, *, is_proven: bool) -> PayerSignIn:
    """Insert a sign-in. It can be used once `sign_in_browser` has sent its cookie to the browser.

    A remembered person can begin any number of sign-ins without a code. Only the newest SIGN_INS of these are
    kept.
    """
    sign_in = PayerSignIn(subject=subject, customer_uuid=customer_uuid, is_proven=is_proven, began_at=Now())
    sign_in.save(force_insert=True)
    if not is_proven:
        rows = PayerSignIn.objects.filter(customer_uuid=customer_uuid, subject=subject, is_proven=False)
        older = list(rows.order_by("-pk").values_list("pk", flat=True)[SIGN_INS:])
        PayerSignIn.objects.filter(pk__in=older).delete()
    return sign_in


def sign_in_browser(request: HttpRequest, response: HttpResponse, sign_in: PayerSignIn) -> None:
    """Sign the browser in for fifteen minutes. End its previous sign-in for the same subject."""
    _end_sign_in(request, sign_in.subject)
    _sign(response, sign_in.subject, sign_in.pk)


def prolong(request: HttpRequest, response: HttpResponse, subject: UUID) -> None:
    """Extend a valid sign-in to fifteen minutes from now, but at most to two hours after it began."""
    if sign_in := _valid_sign_in(request, subject):
        _sign(response, subject, sign_in.row.pk)


def _sign(response: HttpResponse, subject: UUID, sign_in_uuid: UUID) -> None:
    value = signing.dumps([subject.hex, sign_in_uuid.hex], salt=SALT)
    set_cookie(response, cookie_name(subject.hex), value, NOTICE_SECONDS)


def sign_out(request: HttpRequest, response: HttpResponse, subject: UUID) -> None:
    """Sign the person out of this checkout or share, in every browser that has a copy of the cookie."""
    _end_sign_in(request, subject)
    response.delete_cookie(cookie_name(subject.hex), samesite="Lax")


def _end_sign_in(request: HttpRequest, subject: UUID) -> None:
    """Delete the browser's sign-in.

    It is deleted even if its cookie is too old, because a copy of the cookie might be newer.
    """
    sign_in_uuid = _read_cookie(request.COOKIES.get(cookie_name(subject.hex), ""), subject)
    if sign_in_uuid is not None:
        PayerSignIn.objects.filter(pk=sign_in_uuid).delete()
        request.__dict__.setdefault("payer_sign_ins", {})[subject] = None


def end_remembered(request: HttpRequest, subject: UUID) -> None:
    """Delete this browser's sign-in to the subject, and all its sign-ins that began without a code."""
    sign_in_uuids = [
        _read_cookie(request.COOKIES.get(cookie_name(subject_uuid.hex), ""), subject_uuid)
        for subject_uuid in _subjects(request)
    ]
    rows = PayerSignIn.objects.filter(pk__in=[sign_in_uuid for sign_in_uuid in sign_in_uuids if sign_in_uuid])
    rows.filter(Q(is_proven=False) | Q(subject=subject)).delete()


def _subjects(request: HttpRequest) -> list[UUID]:
    """Return the ids of the checkouts and shares for which the browser sends a cookie."""
    prefix = cookie_name("")
    hex_ids = [name.removeprefix(prefix) for name in request.COOKIES if name.startswith(prefix)]
    return [UUID(name) for name in hex_ids if _SUBJECT.fullmatch(name)]


def delete_old() -> None:
    """Delete the sign-ins that ended so long ago that no page mentions them any more."""
    batches.delete(PayerSignIn.objects.filter(pk__lt=clock.first_id(clock.now() - RETENTION)))


def browser_of(request: HttpRequest) -> str:
    """Return this browser's random name, or a new one if it has no name yet."""
    return _browser_name(request) or secrets.token_urlsafe(16)


def claim_of(request: HttpRequest) -> str:
    """Return the digest that identifies this browser's claims on shares, or "" if the browser has no name."""
    name = _browser_name(request)
    return crypto.digest(name) if name else ""


def _browser_name(request: HttpRequest) -> str:
    """Return the name that the service gave this browser, or "" if it has no name or the name has a wrong format."""
    name = request.COOKIES.get(cookie_name(BROWSER), "")
    return name if _NAME.fullmatch(name) else ""


def name_browser(response: HttpResponse, browser: str) -> None:
    """Store the browser's name in a cookie that lasts a day."""
    set_cookie(response, cookie_name(BROWSER), browser, 86_400)


def store_awaited_code(response: HttpResponse, browser: str, shown_code: str) -> None:
    """Store the browser's name in a cookie for a day, and the code if a page shows it instead of a text message.

    Pages show codes only in `local` and `sandbox`.
    """
    name_browser(response, browser)
    if shown_code:
        set_cookie(response, cookie_name(SHOWN_CODE), signing.dumps(shown_code, salt="shown-code"), 600)


def shown_code(request: HttpRequest) -> str:
    """Return the code to show on the page, or "" if the code was sent as a text message."""
    try:
        code: str = signing.loads(
            request.COOKIES.get(cookie_name(SHOWN_CODE), ""), salt="shown-code", max_age=600
        )
    except signing.BadSignature:
        return ""
    return code


def cookie_name(name: str) -> str:
    """Return the full name of a payer's cookie. With https, its prefix binds the cookie to this host."""
    return f"{settings.COOKIE_PREFIX}payer_{name}"


def set_cookie(response: HttpResponse, name: str, value: str, seconds: int) -> None:
    """Set a cookie that scripts cannot read, and that browsers do not send with forms of other sites."""
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=not settings.LOCAL, httponly=True, samesite="Lax"
    )
