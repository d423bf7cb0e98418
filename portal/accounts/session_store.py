"""The session store. The cookie has the session's secret, and the database has only the secret's keyed digest.

A copy of the database therefore cannot be used to log in. In the tables of Django and allauth, `session_key`
is the digest. Rule portal.session_digests.
"""

import secrets

from django.conf import settings
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import CreateError
from django.contrib.sessions.middleware import SessionMiddleware as DjangoSessionMiddleware
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse

from config.lib import crypto

PURPOSE = "session"
DIGEST_LETTERS = 40  # 160 bits; the columns in Django and allauth have room for 40 characters


def digest(secret: str) -> str:
    """Return the session key that the database stores for a cookie's secret."""
    return crypto.keyed_digest(PURPOSE, secret)[:DIGEST_LETTERS]


def _stored_key(secret: str) -> str:
    """Return the session key under which the database has the session for a cookie's secret.

    While LOOKUP_KEY is being replaced, this can also be the digest under the previous LOOKUP_KEY.
    """
    keys = [digest[:DIGEST_LETTERS] for digest in crypto.keyed_digests(PURPOSE, secret)]
    if len(keys) == 1:
        return keys[0]
    stored_key = Session.objects.filter(session_key__in=keys).values_list("session_key", flat=True).first()
    return stored_key or keys[0]


class SessionStore(db.SessionStore):
    """Django's sessions in the database, where `session_key` is the digest of a secret.

    `secret` is not stored. It is available only while a request uses the session.
    """

    secret = ""

    @classmethod
    def of_secret(cls, secret: str) -> "SessionStore":
        """Return the session for a cookie's secret, or an empty session if there is none."""
        store = cls(_stored_key(secret) if secret else None)
        store.secret = secret
        return store

    def create(self) -> None:
        """Begin a session with a new secret, which the middleware puts into the cookie."""
        while True:
            self.secret = secrets.token_urlsafe(32)
            self._session_key = digest(self.secret)
            try:
                self.save(must_create=True)
            except CreateError:  # another session already has this digest
                continue
            self.modified = True
            return


class SessionMiddleware(DjangoSessionMiddleware):
    """Reads the session by the digest of the cookie's secret, and writes the secret into the cookie."""

    def process_request(self, request: HttpRequest) -> None:
        request.session = SessionStore.of_secret(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Replace the session key in Django's cookie with the secret.

        An empty cookie ends the session in the browser, so it stays empty.
        """
        answer = super().process_response(request, response)
        cookie = answer.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie is not None and cookie.value:
            secret: str = request.session.secret  # type: ignore[attr-defined]  # of our store
            answer.cookies[settings.SESSION_COOKIE_NAME] = secret  # keeps the cookie's attributes
        return answer
