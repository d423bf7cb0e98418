"""The session cookie holds a secret, and the database holds only the digest of this secret."""

from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client

from portal.accounts import session_store
from portal.accounts.session_store import SessionStore
from portal.models import User
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.session_digests")]
NAME = settings.SESSION_COOKIE_NAME


def log_in_by_password(client: Client) -> str:
    """Log in through the login page, and return the cookie that the browser now sends."""
    people.log_in(client)
    return str(client.cookies[NAME].value)


def with_cookie(value: Any) -> Client:
    other = Client()
    other.cookies[NAME] = value
    return other


class TestARowOfTheDatabase:
    def test_logs_no_one_in(self, client: Client, lea: User) -> None:
        secret = log_in_by_password(client)
        stolen = {*Session.objects.values_list("session_key", flat=True)}
        stolen |= {*UserSession.objects.values_list("session_key", flat=True)}
        assert stolen and secret not in stolen
        assert not any(people.is_in(with_cookie(key)) for key in stolen)
        assert people.is_in(with_cookie(secret))

    def test_is_useless_without_the_key(self, client: Client, lea: User, settings: Any) -> None:
        """A forged row logs no one in, because a forger without the server's key cannot compute the row's digest."""
        secret = log_in_by_password(client)
        settings.LOOKUP_KEY = "another key"
        assert not people.is_in(with_cookie(secret))

    def test_is_found_under_a_former_key_while_that_is_listed(
        self, client: Client, lea: User, settings: Any
    ) -> None:
        secret = log_in_by_password(client)
        settings.LOOKUP_KEY, settings.LOOKUP_KEY_FALLBACKS = "another key", [settings.LOOKUP_KEY]
        assert people.is_in(with_cookie(secret)) and not people.is_in(with_cookie("x" * 43))

    def test_is_the_same_in_both_tables(self, client: Client, lea: User) -> None:
        secret = log_in_by_password(client)
        key = session_store.digest(secret)
        assert Session.objects.get().session_key == UserSession.objects.get().session_key == key


class TestTheCookie:
    def test_keeps_its_attributes(self, client: Client, lea: User) -> None:
        log_in_by_password(client)
        cookie = client.cookies[NAME]
        assert cookie["httponly"] and cookie["samesite"] == "Lax" and cookie["path"] == "/"
        assert len(cookie.value) >= 43, "256 bits"

    def test_changes_at_login_and_is_deleted_at_logout(self, client: Client, lea: User) -> None:
        client.post("/accounts/login/code/", {"email": people.EMAIL})
        before = client.cookies[NAME].value
        client.post("/accounts/login/code/confirm/", {"code": people.mailed(r"\b\d{8}\b")})
        after = client.cookies[NAME].value
        assert after != before and not people.is_in(with_cookie(before))
        client.post("/accounts/logout/")
        assert not people.is_in(with_cookie(after))

    @pytest.mark.parametrize("value", ["", "x", "é", "a" * 5000, "../../etc"])
    def test_that_is_forged_opens_no_session(self, lea: User, value: str) -> None:
        answer = with_cookie(value).get("/portal")
        assert answer.status_code == 302 and answer["Location"].startswith("/accounts/login/")


class TestStore:
    def test_loads_what_it_has_saved_by_its_secret(self) -> None:
        store = SessionStore()
        store["code"] = "4711"
        store.save()
        assert SessionStore.of_secret(store.secret)["code"] == "4711"
        assert SessionStore.of_secret(str(store.session_key)).get("code") is None

    def test_has_a_new_secret_after_each_cycle(self) -> None:
        store = SessionStore()
        store["code"] = "4711"
        store.save()
        before = store.secret
        store.cycle_key()
        assert store.secret != before and SessionStore.of_secret(store.secret)["code"] == "4711"
        assert SessionStore.of_secret(before).get("code") is None
