"""Adapts Django's test client to our sessions. Our session cookie contains a secret, not the session key.

The session key is the digest of the secret. When the test client logs a person in or starts a session, it puts
the session key into the cookie. This module replaces that key with the secret.
"""

from typing import Any

from django.conf import settings
from django.test import client as django_client

from portal.accounts.session_store import SessionStore

_secrets: dict[str, str] = {}  # the secret for each session key that this process has created


def install() -> None:
    """Make Django's test client send the secrets of sessions instead of their keys."""
    mixin: Any = django_client.ClientMixin
    store_class: Any = SessionStore
    create, log_in, begin = store_class.create, mixin._login, mixin.session

    def creating(store: SessionStore) -> None:
        create(store)
        _secrets[str(store.session_key)] = store.secret

    def logging_in(client: Any, *args: Any) -> None:
        log_in(client, *args)
        _put_secret(client)

    def beginning(client: Any) -> Any:
        cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie:
            return SessionStore.of_secret(cookie.value)
        session = begin.fget(client)
        _put_secret(client)
        return session

    store_class.create = creating
    mixin._login, mixin.session = logging_in, property(beginning)


def _put_secret(client: Any) -> None:
    name = settings.SESSION_COOKIE_NAME
    if client.cookies[name].value in _secrets:
        client.cookies[name] = _secrets[client.cookies[name].value]
