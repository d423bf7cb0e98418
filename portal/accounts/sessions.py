"""A person's sessions: how long they last, how they are listed and how they end (rule portal.sessions)."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from allauth.account.signals import authentication_step_completed
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.sessions.models import Session
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from config.lib import batches
from config.lib.web import address
from hosted_page.payment_target import AUTOMATIC
from portal.accounts import session_store
from portal.models import User

BEGAN_KEY = "began_at"  # session key: when the session began, in Unix seconds
SEEN_INTERVAL = timedelta(minutes=1)
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("Linux", "Linux"),
)


# This header marks the requests with which a page refreshes automatically. Without JavaScript, the query
# parameter AUTOMATIC marks them instead.
AUTOMATIC_HEADER = "X-Live"
AUTOMATIC_PREFIXES = ("/admin/", "/portal/")


class SessionMiddleware:
    """Ends a session after SESSION_LONGEST, and extends its idle timeout each time that a person uses it.

    The idle timeout is the row's expire_date (SESSION_COOKIE_AGE). The middleware updates only this column,
    at most once a minute. If it saved the whole session with each request, it would undo what another request
    has just saved.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            began = request.session.setdefault(BEGAN_KEY, time.time())
            if time.time() - began >= settings.SESSION_LONGEST:
                logout(request)
            else:
                _move_session_row(request)
                if not _is_automatic(request):
                    _mark_seen(request)
        return self._get_response(request)


class ListedSession(NamedTuple):
    """A session in the list of a person's sessions."""

    pk: int
    browser: str
    address: str
    seen_at: datetime
    is_this: bool


def sessions_of(request: HttpRequest, user: User) -> list[ListedSession]:
    """Return the person's sessions. The session of this request is first, and the most recently used ones follow."""
    UserSession.objects.create_from_request(request)
    live_keys = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    sessions = [
        ListedSession(
            row.pk,
            browser_in_words(row.user_agent),
            row.ip,
            row.last_seen_at,
            row.session_key == _session_key(request),
        )
        for row in UserSession.objects.filter(user=user, session_key__in=live_keys)
    ]
    return sorted(sessions, key=lambda session: (session.is_this, session.seen_at), reverse=True)


def end_other_sessions(request: HttpRequest, user: User, session_id: str = "") -> int:
    """End the person's session with this id, or all sessions of the person if `session_id` is empty.

    The session of the request is never ended. Return how many sessions were ended.
    """
    rows = UserSession.objects.filter(user=user).exclude(session_key=_session_key(request))
    ended = [row for row in rows if session_id in ("", str(row.pk))]
    for row in ended:
        row.end()
    return len(ended)


def end_all(user: User) -> None:
    """End all sessions of a person whose account has been disabled."""
    for row in UserSession.objects.filter(user=user):
        row.end()


@receiver(authentication_step_completed)
def renew_session_key(request: HttpRequest, reauthenticated: bool = False, **_: object) -> None:
    """Give the session a new key after the person proves their identity again, as Django does after a login."""
    if reauthenticated:
        previous_key = _session_key(request)
        request.session.cycle_key()
        UserSession.objects.filter(session_key=previous_key).update(session_key=_session_key(request))


def browser_in_words(user_agent: str) -> str:
    """Return the browser and system in a User-Agent as words, such as "Firefox on Linux"."""
    name = next((words for mark, words in BROWSERS if f"{mark}/" in user_agent), "")
    system = next((words for mark, words in SYSTEMS if mark in user_agent), "")
    return " on ".join(filter(None, (name or "A browser", system)))


def delete_ended() -> None:
    """Delete the rows of expired sessions."""
    batches.delete(Session.objects.filter(expire_date__lt=timezone.now()))
    batches.delete(UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")))


def _move_session_row(request: HttpRequest) -> None:
    """Update the session's key in its UserSession row, because Django changes the key after SECRET_KEY was replaced."""
    previous_key = session_store.digest(request.COOKIES[settings.SESSION_COOKIE_NAME])
    if previous_key != _session_key(request):
        UserSession.objects.filter(session_key=previous_key).update(session_key=_session_key(request))


def _is_automatic(request: HttpRequest) -> bool:
    """Return whether the browser sent the request automatically, as a page refresh or a CSP report."""
    is_read = request.method == "GET" and request.path.startswith(AUTOMATIC_PREFIXES)
    return request.path == reverse("csp_reports") or (
        is_read and (AUTOMATIC_HEADER in request.headers or AUTOMATIC in request.GET)
    )


def _mark_seen(request: HttpRequest) -> None:
    now = timezone.now()
    stale = UserSession.objects.filter(
        session_key=_session_key(request), last_seen_at__lt=now - SEEN_INTERVAL
    )
    if stale.update(last_seen_at=now, ip=address.caller_address(request)):
        until = now + timedelta(seconds=settings.SESSION_COOKIE_AGE)
        Session.objects.filter(session_key=_session_key(request)).update(expire_date=until)


def _session_key(request: HttpRequest) -> str:
    return request.session.session_key or ""
