"""The payer's cookies: who is signed in, by a signed cookie per checkout or share, and the browser's random name."""

import secrets
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

LIFE = 15 * 60  # seconds, sliding (rule sign_in.session)
BROWSER, SHOWN_CODE = "browser", "code"


def customer_of(request: HttpRequest, subject: UUID) -> UUID | None:
    """Return the id of the person signed in for this checkout or share in this browser, None if nobody is."""
    try:
        value = signing.loads(request.COOKIES.get(_name(subject.hex), ""), salt="payer", max_age=LIFE)
    except signing.BadSignature:
        return None
    subject_hex, customer_hex = value
    return UUID(customer_hex) if subject_hex == subject.hex else None


def remember(response: HttpResponse, subject: UUID, customer_uuid: UUID) -> None:
    """Sign the person in for fifteen minutes, or anew for as long."""
    value = signing.dumps([subject.hex, customer_uuid.hex], salt="payer")
    _set(response, _name(subject.hex), value, LIFE)


def browser_of(request: HttpRequest) -> str:
    """Return this browser's random name, a new one if it has none yet."""
    return request.COOKIES.get(_name(BROWSER)) or secrets.token_urlsafe(16)


def await_code(response: HttpResponse, browser: str, shown_code: str) -> None:
    """Keep the browser's name for a day, and for the page a code that was not sent (local and sandbox)."""
    _set(response, _name(BROWSER), browser, 86_400)
    if shown_code:
        _set(response, _name(SHOWN_CODE), signing.dumps(shown_code, salt="shown-code"), 600)


def shown_code(request: HttpRequest) -> str:
    """Return the code to show on the page, "" if it was sent."""
    try:
        code: str = signing.loads(request.COOKIES.get(_name(SHOWN_CODE), ""), salt="shown-code", max_age=600)
    except signing.BadSignature:
        return ""
    return code


def _name(what: str) -> str:
    return f"{settings.COOKIE_PREFIX}payer_{what}"


def _set(response: HttpResponse, name: str, value: str, seconds: int) -> None:
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=not settings.LOCAL, httponly=True, samesite="Lax"
    )


def sign_out(response: HttpResponse, subject: UUID) -> None:
    """Sign the person out of this checkout or share."""
    response.delete_cookie(_name(subject.hex), samesite="Lax")
