"""How long a login lasts, and how sessions are listed and ended."""

import re
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import quote

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings as service
from django.contrib.sessions.models import Session
from django.db.models import F
from django.test import Client
from django.utils import timezone

from checkout.models import Checkout
from payments.models import Merchant
from portal import tasks
from portal.accounts import sessions
from portal.models import AuditEntry, User
from tests.portal import people

pytestmark = pytest.mark.django_db
TEMPLATES = service.BASE_DIR / "templates"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def pass_time(span: timedelta) -> None:
    """Simulate that time has passed: move the times of all sessions back."""
    Session.objects.update(expire_date=F("expire_date") - span)
    UserSession.objects.update(last_seen_at=F("last_seen_at") - span)
    for row in Session.objects.all():
        facts = row.get_decoded()
        if sessions.BEGAN_KEY in facts:
            facts[sessions.BEGAN_KEY] -= span.total_seconds()
            row.session_data = Session.objects.encode(facts)
            row.save(update_fields=["session_data"])


class TestEnd:
    @pytest.mark.rule("portal.sessions")
    def test_comes_after_fifteen_idle_minutes(self, client: Client, lea: User) -> None:
        people.log_in(client)
        pass_time(timedelta(minutes=14))
        assert people.is_in(client)
        pass_time(timedelta(minutes=16))
        assert not people.is_in(client)

    def test_is_delayed_by_use(self, client: Client, lea: User) -> None:
        people.log_in(client)
        for _ in range(3):
            pass_time(timedelta(minutes=10))
            assert people.is_in(client)

    @pytest.mark.rule("portal.sessions")
    def test_comes_after_twelve_hours_in_any_case(self, client: Client, lea: User) -> None:
        people.log_in(client)
        assert people.is_in(client)
        for _ in range(51):
            pass_time(timedelta(minutes=14))
            assert people.is_in(client)
        pass_time(timedelta(minutes=7))
        assert not people.is_in(client)
        assert not Session.objects.filter(session_key=client.session.session_key).exists()

    def test_of_idle_time_is_updated_once_a_minute_at_most(self, client: Client, lea: User) -> None:
        people.log_in(client)
        client.get("/portal/keys")
        before = Session.objects.get().expire_date
        client.get("/portal/keys")
        assert Session.objects.get().expire_date == before

    def test_comes_when_the_browser_closes(self, client: Client, lea: User) -> None:
        people.log_in(client)
        cookie = client.cookies["sessionid"]
        assert not cookie["max-age"] and not cookie["expires"] and cookie["httponly"]

    def test_of_a_session_id_from_before_the_login_comes_with_the_login(
        self, client: Client, lea: User
    ) -> None:
        client.post("/accounts/login/code/", {"email": people.EMAIL})
        before = client.cookies["sessionid"].value
        client.post("/accounts/login/code/confirm/", {"code": people.mailed(r"\b\d{8}\b")})
        assert client.cookies["sessionid"].value != before
        thief = Client()
        thief.cookies["sessionid"] = before
        assert not people.is_in(thief)

    def test_by_logging_out_is_on_the_server(self, client: Client, lea: User) -> None:
        people.log_in(client)
        before = client.cookies["sessionid"].value
        client.post("/accounts/logout/")
        thief = Client()
        thief.cookies["sessionid"] = before
        assert not people.is_in(thief)

    @pytest.mark.rule("portal.sessions")
    @pytest.mark.parametrize("has_app", [True, False], ids=["by code", "by password"])
    def test_of_the_session_key_comes_with_each_proof_of_identity(
        self, client: Client, lea: User, has_app: bool
    ) -> None:
        secret = people.set_up_app(lea) if has_app else ""
        client.force_login(lea)
        assert people.is_in(client)
        before = client.cookies["sessionid"].value
        if has_app:
            client.post("/accounts/2fa/reauthenticate/", {"code": people.code(secret)})
        else:
            client.post("/accounts/reauthenticate/", {"password": people.PASSWORD})
        assert people.is_in(client) and client.cookies["sessionid"].value != before
        assert UserSession.objects.get().session_key == client.session.session_key
        thief = Client()
        thief.cookies["sessionid"] = before
        assert not people.is_in(thief)

    def test_rows_of_ended_sessions_are_deleted(self, client: Client, lea: User) -> None:
        people.log_in(client)
        people.log_in(Client())
        Session.objects.filter(pk=client.session.session_key).update(expire_date=timezone.now())
        tasks.delete_ended_sessions()
        assert Session.objects.count() == UserSession.objects.count() == 1


class TestAPageThatUpdatesItself:
    LOOKS: ClassVar = [{"headers": {"X-Live": "1"}}, {"query_params": {"looks": "1"}}]

    @pytest.mark.rule("portal.sessions")
    @pytest.mark.parametrize("look", LOOKS, ids=["by its script", "without script"])
    def test_does_not_extend_the_session(self, client: Client, lea: User, look: dict[str, Any]) -> None:
        people.log_in(client)
        assert people.is_in(client)
        pass_time(timedelta(minutes=10))
        assert client.get("/portal/webhooks", **look).status_code == 200
        pass_time(timedelta(minutes=6))
        assert not people.is_in(client)

    def test_with_browser_reports_does_not_extend_the_session(self, client: Client, lea: User) -> None:
        people.log_in(client)
        assert people.is_in(client)
        pass_time(timedelta(minutes=10))
        kind = "application/reports+json"
        assert client.post("/csp-reports", "[]", content_type=kind).status_code == 204
        pass_time(timedelta(minutes=6))
        assert not people.is_in(client)

    @pytest.mark.parametrize("look", LOOKS, ids=["by its script", "without script"])
    def test_does_not_include_sending_a_form(self, client: Client, lea: User, look: dict[str, Any]) -> None:
        people.log_in(client)
        assert people.is_in(client)
        pass_time(timedelta(minutes=10))
        client.post("/portal/webhooks/test", **look)
        pass_time(timedelta(minutes=6))
        assert people.is_in(client)

    def test_leads_to_the_login_after_the_end(self, client: Client, lea: User, unpaid: Checkout) -> None:
        people.log_in(client)
        pass_time(timedelta(minutes=16))
        page, login = f"/portal/checkouts/{unpaid.pk}", "/accounts/login/?next="
        part = {"HX-Request": "true", "HX-Target": "state", "HX-Current-URL": f"http://testserver{page}"}
        assert client.get(page, headers={"X-Live": "1", **part})["HX-Redirect"] == login + quote(page, "")
        assert client.get(f"{page}?looks=1")["Location"] == f"{login}{page}%3Flooks%3D1"

    def test_marks_its_requests_as_automatic(self) -> None:
        pages = [
            page.read_text() for name in ("portal", "operators") for page in (TEMPLATES / name).glob("*.html")
        ]
        asking = [tag for page in pages for tag in re.findall(r"<\w+[^>]*?every \d+m?s[^>]*", page)]
        anew = [tag for page in pages for tag in re.findall(r'<meta http-equiv="refresh"[^>]*', page)]
        assert len(asking) == 7 and all("X-Live" in tag for tag in asking), asking
        assert len(anew) == 3 and all("looks=1" in tag for tag in anew), anew


class TestList:
    def test_marks_the_current_session_and_shows_browser_and_address(self, client: Client, lea: User) -> None:
        people.log_in(Client(headers={"user-agent": FIREFOX}), at=people.ELSEWHERE)
        people.log_in(client)
        shown = client.get("/portal/security", REMOTE_ADDR=people.HOME)
        first, second = shown.context["sessions"]
        assert first.is_this and not second.is_this
        assert (second.browser, second.address) == ("Firefox on Linux", people.ELSEWHERE)
        assert "Firefox on Linux" in shown.content.decode()

    @pytest.mark.rule("portal.sessions")
    def test_one_is_ended_at_once(self, client: Client, lea: User) -> None:
        others = [Client(), Client()]
        for other in (client, *others):
            people.log_in(other)
        row = UserSession.objects.get(session_key=others[0].session.session_key)
        assert client.post("/accounts/sessions/", {"session": row.pk}).status_code == 303
        assert [people.is_in(other) for other in (client, *others)] == [True, False, True]
        assert AuditEntry.objects.get(action="sessions_ended").facts == {"sessions": 1}

    def test_opened_as_a_page_leads_to_the_security_settings_and_ends_no_session(
        self, client: Client, lea: User
    ) -> None:
        other = Client()
        for one in (client, other):
            people.log_in(one)
        assert client.get("/accounts/sessions/")["Location"] == "/accounts/2fa/"
        assert people.is_in(other)

    def test_all_others_are_ended_at_once(self, client: Client, lea: User) -> None:
        others = [Client(), Client()]
        for other in (client, *others):
            people.log_in(other)
        page = client.post("/accounts/sessions/", follow=True)
        assert "All other sessions have ended" in page.content.decode()
        assert [people.is_in(other) for other in (client, *others)] == [True, False, False]

    @pytest.mark.rule("portal.sessions")
    def test_one_is_ended_after_a_fresh_proof_only(self, client: Client, lea: User) -> None:
        other = Client()
        people.log_in(other)
        people.log_in(client)
        people.prove(client, lea, ago=360)
        answer = client.post("/accounts/sessions/")
        assert answer["Location"].startswith("/accounts/reauthenticate/") and people.is_in(other)
        client.post(answer["Location"], {"password": people.PASSWORD})
        assert people.is_in(client) and not people.is_in(other)

    @pytest.mark.parametrize("named", ["this", "rivals", "0", "x"])
    def test_only_own_sessions_can_be_ended(
        self, client: Client, lea: User, rival: Merchant, named: str
    ) -> None:
        people.join(rival, email="rita@rival.example")
        stranger = Client()
        people.log_in(stranger, email="rita@rival.example")
        people.log_in(client)
        keys = {"this": client, "rivals": stranger}
        pk = (
            UserSession.objects.get(session_key=keys[named].session.session_key).pk
            if named in keys
            else named
        )
        client.post("/accounts/sessions/", {"session": pk})
        assert people.is_in(client) and people.is_in(stranger)
        assert not AuditEntry.objects.filter(action="sessions_ended").exists()

    def test_a_get_request_ends_no_session(self, client: Client, lea: User) -> None:
        people.log_in(client)
        assert client.get("/accounts/sessions/").status_code == 302
        assert client.get("/portal").status_code == 200

    @pytest.mark.parametrize(
        ("user_agent", "words"),
        [
            (FIREFOX, "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36",
                "Chrome on Android",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Mobile Safari/604.1",
                "Safari on iPhone",
            ),
            ("", "A browser"),
        ],
    )
    def test_names_browsers_in_words(self, user_agent: str, words: str) -> None:
        assert sessions.browser_in_words(user_agent) == words
