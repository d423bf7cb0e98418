"""Logins with a password, with a mailed code, and with a mailed link."""

import re
from collections.abc import Callable

import pytest
from django.conf import settings as ours
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django.fixtures import Settings

from config import settings as written
from payments.models import Merchant
from portal.models import AuditEntry, OutboundEmail, User
from tests.config.starting import PRODUCTION
from tests.portal import people
from tests.portal.people import EMAIL, PASSWORD

pytestmark = pytest.mark.django_db


NEW = "another bill on the table"


class TestPassword:
    def test_leads_to_the_portal_and_into_the_audit_log(self, client: Client, lea: User) -> None:
        answer = people.log_in(client)
        assert (answer.status_code, answer["Location"]) == (302, "/portal")
        entry = AuditEntry.objects.get(action="logged_in")
        assert (entry.user, entry.address) == (lea, people.HOME)

    def test_leads_to_the_requested_portal_page_but_never_to_another_site(
        self, client: Client, lea: User
    ) -> None:
        fields = {"login": EMAIL, "password": PASSWORD}
        answer = client.post("/accounts/login/", fields | {"next": "/portal/keys"})
        assert answer["Location"] == "/portal/keys"
        client.post("/accounts/logout/")
        answer = client.post("/accounts/login/", fields | {"next": "https://evil.example/"})
        assert answer["Location"] == "/portal"

    def test_accepts_an_email_address_in_any_case(self, client: Client, acme: Merchant) -> None:
        people.join(acme, email="Lea@Acme.example")
        assert people.log_in(client, email=" lea@ACME.example ").status_code == 302

    @pytest.mark.rule("portal.login")
    def test_gives_the_same_answer_with_and_without_an_account(self, client: Client, lea: User) -> None:
        known, unknown = (
            people.log_in(client, "wrong"),
            people.log_in(client, "wrong", email="x@acme.example"),
        )
        said = [re.sub(r'value="[^"]*"', "", page.content.decode()) for page in (known, unknown)]
        assert said[0] == said[1] and known.status_code == unknown.status_code == 200
        assert "do not match" in said[0]

    def test_of_a_closed_account_does_not_log_in(self, client: Client, lea: User) -> None:
        User.objects.update(is_active=False)
        assert people.log_in(client)["Location"] == "/accounts/inactive/"
        assert not people.is_in(client)

    def test_of_a_closed_account_names_support_who_can_open_it(self, client: Client) -> None:
        page = client.get("/accounts/inactive/").content.decode()
        assert f"mailto:{ours.SUPPORT_EMAIL}" in page and "owner" not in page

    def test_page_links_to_the_other_portal(self, client: Client, settings: Settings) -> None:
        assert "Go to the live portal" not in client.get("/accounts/login/").content.decode()
        settings.LIVE_PORTAL_URL = "https://live.example/portal"
        assert "https://live.example/portal" in client.get("/accounts/login/").content.decode()


class TestCodeByMail:
    def ask(self, client: Client, email: str = EMAIL) -> None:
        answer = client.post("/accounts/login/code/", {"email": email})
        assert answer["Location"] == "/accounts/login/code/confirm/"

    def test_logs_in(self, client: Client, lea: User) -> None:
        self.ask(client)
        answer = client.post("/accounts/login/code/confirm/", {"code": people.mailed(r"\b\d{8}\b")})
        assert answer["Location"] == "/portal" and people.is_in(client)

    def test_still_asks_for_the_app(self, client: Client, lea: User) -> None:
        people.set_up_app(lea)
        self.ask(client)
        answer = client.post("/accounts/login/code/confirm/", {"code": people.mailed(r"\b\d{8}\b")})
        assert answer["Location"] == "/accounts/2fa/authenticate/" and not people.is_in(client)

    def test_works_only_in_its_own_browser(self, client: Client, lea: User) -> None:
        self.ask(client)
        other = Client()
        self.ask(other, "stranger@acme.example")
        OutboundEmail.objects.filter(kind="account/email/unknown_account").delete()
        other.post("/accounts/login/code/confirm/", {"code": people.mailed(r"\b\d{8}\b")})
        assert not people.is_in(other)

    def test_is_refused_after_the_address_has_changed(self, client: Client, lea: User) -> None:
        self.ask(client)
        User.objects.update(email="lea@new.example")
        answer = client.post("/accounts/login/code/confirm/", {"code": people.mailed(r"\b\d{8}\b")})
        assert answer["Location"] == "/accounts/login/" and not people.is_in(client)
        assert "This code was sent to a previous address." in client.get("/accounts/login/").content.decode()

    def test_gives_the_same_answer_and_sends_a_mail_in_both_cases(self, client: Client, lea: User) -> None:
        self.ask(client)
        self.ask(Client(), "nobody@acme.example")
        assert [sent.to for sent in people.mails()] == [[EMAIL], ["nobody@acme.example"]]
        assert not re.search(r"\d{8}", str(people.mails()[-1].body))


class TestReset:
    def link(self, client: Client, email: str = EMAIL) -> str:
        answer = client.post("/accounts/password/reset/", {"email": email})
        assert answer["Location"] == "/accounts/password/reset/done/"
        return people.mailed(r"http\S+/key/\S+")

    def choose(self, client: Client, link: str) -> int:
        page = client.get(link.removeprefix(ours.BASE_URL), follow=True)
        path = page.redirect_chain[-1][0] if page.redirect_chain else link
        return client.post(path, {"password1": NEW, "password2": NEW}).status_code

    def test_mails_a_link_to_a_new_password(self, client: Client, lea: User) -> None:
        before = Client()
        people.log_in(before)
        assert self.choose(client, self.link(client)) == 302
        assert not people.is_in(before), "all sessions end"
        assert people.log_in(client).status_code == 200
        assert people.log_in(client, NEW).status_code == 302
        assert AuditEntry.objects.filter(action="password_reset").count() == 1
        assert people.mails()[-1].subject.endswith("Your password was reset")
        written = str(people.mails()[-1].body)
        assert f"reset your password now:\n{ours.PORTAL_URL}/accounts/password/reset/\n" in written
        assert f"Then inform your team, and write to our support at {ours.SUPPORT_EMAIL}." in written

    def test_says_once_that_the_password_has_changed_and_all_sessions_have_ended(
        self, client: Client, lea: User
    ) -> None:
        self.choose(client, self.link(client))
        page = client.get("/accounts/password/reset/key/done/").content.decode()
        assert "All your sessions have ended. Log in with the new password." in page
        assert "All other sessions" not in page and "Your password is changed" not in page

    def test_link_works_once(self, client: Client, lea: User) -> None:
        link = self.link(client)
        self.choose(client, link)
        shown = Client().get(link.removeprefix(ours.BASE_URL)).content.decode()
        assert "This link no longer works" in shown

    def test_link_has_our_host_even_if_another_was_requested(
        self, client: Client, lea: User, settings: Settings
    ) -> None:
        settings.ALLOWED_HOSTS = ["*"]
        client.post("/accounts/password/reset/", {"email": EMAIL}, headers={"host": "evil.example"})
        assert "evil.example" not in str(people.mails()[-1].body)

    def test_gives_the_same_answer_with_and_without_an_account(self, client: Client, lea: User) -> None:
        for email in (EMAIL, "nobody@acme.example"):
            answer = client.post("/accounts/password/reset/", {"email": email})
            assert answer["Location"] == "/accounts/password/reset/done/"
        assert [sent.to for sent in people.mails()] == [[EMAIL], ["nobody@acme.example"]]


class TestChange:
    def change(self, client: Client, current: str = PASSWORD, new: str = NEW) -> str:
        fields = {"oldpassword": current, "password1": new, "password2": new}
        return str(client.post("/accounts/password/change/", fields, follow=True).content.decode())

    def test_ends_all_other_sessions_and_sends_a_mail(self, client: Client, lea: User) -> None:
        other = Client()
        people.log_in(other)
        people.log_in(client)
        assert "Your password is changed" in self.change(client)
        assert people.is_in(client) and not people.is_in(other)
        (sent,) = people.mails()
        assert sent.to == [EMAIL] and sent.subject.endswith("Your password was changed")
        assert people.HOME not in str(sent.body) and "127.0.0.1" in str(sent.body)
        assert AuditEntry.objects.filter(action="password_changed").count() == 1

    @pytest.mark.parametrize(
        ("new", "says"),
        [
            ("short", "at least 12"),
            ("x" * 129, "at most 128"),
            ("password1234", "too common"),
            ("lea@acme.example", "too similar"),
        ],
    )
    def test_refuses_a_weak_password(self, client: Client, lea: User, new: str, says: str) -> None:
        people.log_in(client)
        assert says in self.change(client, new=new)
        assert User.objects.get().check_password(PASSWORD)

    def test_accepts_128_characters(self, client: Client, lea: User) -> None:
        people.log_in(client)
        self.change(client, new="é" * 128)
        assert User.objects.get().check_password("é" * 128)

    def test_requires_the_current_password(self, client: Client, lea: User) -> None:
        people.log_in(client)
        assert "This is not your password" in self.change(client, current="wrong")
        assert User.objects.get().check_password(PASSWORD)


class TestAddresses:
    def test_there_is_no_sign_up(self, client: Client) -> None:
        assert client.get("/accounts/signup/").status_code == 404
        assert reverse("account_signup") == reverse("account_login")
        with pytest.raises(NoReverseMatch):
            reverse("account_email")

    def test_the_address_that_logs_out_says_so_if_it_is_opened(self, client: Client, lea: User) -> None:
        opened = client.get("/accounts/logout/")
        assert opened.status_code == 405 and "This address only takes a form" in opened.content.decode()
        people.set_up_app(lea)
        client.force_login(lea)
        page = client.get("/accounts/logout/")
        assert page.status_code == 405 and page["Allow"] == "POST" and people.is_in(client)
        assert "You are still logged in." in page.content.decode()
        assert "Acme Tickets" in page.content.decode(), "the frame of the portal"

    def test_pages_without_a_login_do_not_fail_and_are_not_cached(self, client: Client) -> None:
        from portal.urls import accounts

        for pattern in accounts:
            if "uidb36" in str(pattern.pattern):
                continue
            answer = client.get(f"/accounts/{pattern.pattern}".replace("<int:pk>", "1"))
            assert answer.status_code in (200, 302, 403, 405), pattern

    def test_pages_with_a_login_do_not_fail_and_are_not_cached(self, client: Client, lea: User) -> None:
        from portal.urls import accounts

        people.set_up_app(lea)
        client.force_login(lea)
        for pattern in accounts:
            if "uidb36" in str(pattern.pattern):
                continue
            answer = client.get(f"/accounts/{pattern.pattern}".replace("<int:pk>", "1"))
            assert answer.status_code in (200, 302, 404, 405), pattern
            if answer.status_code == 200 and "/done/" not in str(pattern.pattern):
                assert "no-store" in answer["Cache-Control"], pattern

    def test_a_password_that_was_never_set_is_chosen_by_mail(self, client: Client, lea: User) -> None:
        lea.set_unusable_password()
        lea.save()
        client.force_login(lea)
        answer = client.get("/accounts/password/change/", follow=True)
        assert answer.redirect_chain[-1][0] == "/accounts/password/reset/"


class TestSettings:
    def test_cookies_outside_local_mode_are_limited_to_the_host(
        self, production: Callable[[str], object]
    ) -> None:
        assert production("SESSION_COOKIE_NAME") == "__Host-sessionid"
        assert production("CSRF_COOKIE_NAME") == "__Host-csrftoken"
        assert written.SESSION_COOKIE_NAME == "sessionid"
        assert ours.SESSION_COOKIE_HTTPONLY and ours.SESSION_COOKIE_SAMESITE == "Lax"


@pytest.fixture
def production(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Return a function that returns the value of a setting in production."""
    import runpy

    for name, value in PRODUCTION.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FAIL_POINTS", raising=False)
    read = runpy.run_path(str(written.BASE_DIR / "config" / "settings.py"))
    return lambda name: read[name]
