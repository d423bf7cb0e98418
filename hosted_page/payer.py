"""The payer's cookies: who is signed in, by a signed cookie per checkout or share, and the browser's random name."""

import re
import secrets
import time
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from config.lib import crypto

LIFE = 15 * 60  # seconds, sliding (rule sign_in.session)
AFTERWARDS = 60 * 60  # seconds in which a browser is told that a sign-in has ended (rule sign_in.said)
BROWSER, SHOWN_CODE = "browser", "code"
# A browser's name as token_urlsafe(16) makes it: what else comes may fit into no header.
_NAME = re.compile(r"[A-Za-z0-9_-]{22}")
PROVEN, REMEMBERED = "payer", "payer remembered"  # how somebody signed in: the salts of the cookie


def customer_of(request: HttpRequest, subject: UUID) -> UUID | None:
    """Return the id of the person signed in for this checkout or share in this browser, None if nobody is."""
    return _read(request, subject, PROVEN) or _read(request, subject, REMEMBERED)


def is_proven(request: HttpRequest, subject: UUID) -> bool:
    """Return whether the person signed in has entered a code in this visit, and was not remembered."""
    return _read(request, subject, PROVEN) is not None


def signed_out(request: HttpRequest, subject: UUID) -> UUID | None:
    """Return who was signed in here until their time was over, None if nobody was, or somebody is."""
    if customer_of(request, subject) is not None:
        return None
    return _read(request, subject, PROVEN, AFTERWARDS) or _read(request, subject, REMEMBERED, AFTERWARDS)


def seconds_left(request: HttpRequest, subject: UUID) -> int:
    """Return how long the sign-in of the person who is signed in here lasts yet."""
    signed_at = _signed_at(request.COOKIES[cookie_name(subject.hex)])
    return max(0, round(signed_at + LIFE - time.time()))


def _read(request: HttpRequest, subject: UUID, salt: str, max_age: int | None = None) -> UUID | None:
    """Return the person whom the cookie of a checkout or share names, None without one or with one that is older.

    A page asks eight times who is signed in: a request opens each cookie once.
    """
    opened: dict[tuple[UUID, str], _Opened] = request.__dict__.setdefault("payer_cookies", {})
    if (subject, salt) not in opened:
        opened[subject, salt] = _open(request.COOKIES.get(cookie_name(subject.hex), ""), subject, salt)
    person, signed_at = opened[subject, salt]
    return person if time.time() - signed_at <= (LIFE if max_age is None else max_age) else None


class _Opened(NamedTuple):
    """Whom a cookie names, None if it is none of ours, and when we signed it, in seconds."""

    person: UUID | None
    signed_at: int = 0


def _open(cookie: str, subject: UUID, salt: str) -> _Opened:
    try:
        subject_hex, customer_hex = signing.loads(cookie, salt=salt)
    except signing.BadSignature:
        return _Opened(None)
    return _Opened(UUID(customer_hex) if subject_hex == subject.hex else None, _signed_at(cookie))


def _signed_at(cookie: str) -> int:
    """Return when a cookie was signed, as Django's signer writes it."""
    return signing.b62_decode(cookie.rsplit(":", 2)[1])


def remember(response: HttpResponse, subject: UUID, customer_uuid: UUID, *, is_proven: bool = True) -> None:
    """Sign the person in for fifteen minutes."""
    value = signing.dumps([subject.hex, customer_uuid.hex], salt=PROVEN if is_proven else REMEMBERED)
    put(response, cookie_name(subject.hex), value, AFTERWARDS)


def prolong(request: HttpRequest, response: HttpResponse, subject: UUID) -> None:
    """Sign the person who is signed in in anew, as they are, for fifteen minutes."""
    for salt in (PROVEN, REMEMBERED):
        if customer_uuid := _read(request, subject, salt):
            remember(response, subject, customer_uuid, is_proven=salt == PROVEN)
            return


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


def sign_out(response: HttpResponse, subject: UUID) -> None:
    """Sign the person out of this checkout or share."""
    response.delete_cookie(cookie_name(subject.hex), samesite="Lax")
