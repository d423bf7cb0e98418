"""The authenticator app and its recovery codes: setting them up, using, requiring and removing them."""

import json
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django.fixtures import Settings

from payments.models import Merchant
from portal import urls
from portal.models import AuditEntry, Role, User
from tests.config import addresses
from tests.portal import people
from tests.portal.accounts.device import Device

pytestmark = pytest.mark.django_db
SET_UP = "/accounts/2fa/totp/activate/"
ASKED = "/accounts/2fa/authenticate/"
PASSKEY = "/accounts/2fa/passkeys/add/"
# Pages that a person without a second factor can open: the pages that add one, the pages that first ask for a proof of
# identity, and the pages for people who are not logged in.
OPEN = {
    *(SET_UP, PASSKEY),
    *("/accounts/reauthenticate/", "/accounts/2fa/reauthenticate/", "/accounts/2fa/passkeys/reauthenticate/"),
    *(
        "/accounts/login/",
        "/accounts/login/code/",
        "/accounts/login/code/confirm/",
        "/accounts/2fa/authenticate/",
    ),
    *("/accounts/login/passkey/", "/accounts/logout/", "/accounts/inactive/", "/accounts/password/set/"),
    *("/accounts/password/reset/", "/accounts/password/reset/done/", "/accounts/password/reset/key/done/"),
    *("/accounts/password/reset/key/1-1/", "/admin/login/"),
}


def prove_long_ago(client: Client) -> None:
    """Set the person's last proof of identity to six minutes ago."""
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 360
    session.save()


def pages() -> list[str]:
    """Return all addresses of the portal, of accounts, and of the admin's lists and tools."""
    tools = [route for route, _ in addresses.below(list(admin.site.get_urls()), "admin/") if "<" not in route]
    routes = [*(route for route, _ in addresses.below(urls.urlpatterns)), *tools]
    return list(dict.fromkeys(map(addresses.path, routes)))


def is_open(answer: Any) -> bool:
    return bool(answer.status_code != 405 and answer.headers.get("Location") != SET_UP)


class TestSettingUp:
    def set_up(self, client: Client) -> str:
        page = client.get(SET_UP)
        secret = str(page.context["form"].secret)
        answer = client.post(SET_UP, {"code": people.code(secret)})
        assert answer["Location"] == "/accounts/2fa/codes/", answer.content.decode()
        return secret

    @pytest.mark.django_db(transaction=True)  # commit, because the mail is sent on commit
    def test_leads_to_the_recovery_codes_and_sends_a_mail(self, client: Client, lea: User) -> None:
        people.log_in(client)
        self.set_up(client)
        page = client.get("/accounts/2fa/codes/").content.decode()
        assert all(code in page for code in people.recovery_codes(lea))
        (sent,) = people.mails()
        assert sent.subject.endswith("An authenticator app was set up")
        assert AuditEntry.objects.filter(action="second_factor_added").count() == 1

    def test_needs_no_second_proof_right_after_the_login_but_later(self, client: Client, lea: User) -> None:
        people.log_in(client)
        assert client.get(SET_UP).status_code == 200
        prove_long_ago(client)
        assert client.get(SET_UP)["Location"].startswith("/accounts/reauthenticate/")

    def test_refuses_a_wrong_code(self, client: Client, lea: User) -> None:
        people.log_in(client)
        client.get(SET_UP)
        assert client.post(SET_UP, {"code": "000000"}).status_code == 200
        assert not Authenticator.objects.exists()

    def test_secrets_are_encrypted_at_rest(self, client: Client, lea: User) -> None:
        people.log_in(client)
        secret = self.set_up(client)
        codes = people.recovery_codes(lea)
        kept = json.dumps(list(Authenticator.objects.values_list("data", flat=True)))
        assert secret not in kept and not any(code in kept for code in codes)
        rows = [session.get_decoded() for session in Session.objects.all()]
        assert secret not in json.dumps(rows)

    def test_its_picture_is_on_the_page(self, client: Client, lea: User) -> None:
        people.log_in(client)
        page = client.get(SET_UP)
        assert "<svg" in page.content.decode() and "data:" not in page.content.decode()
        assert "no-store" in page["Cache-Control"]


class TestLogin:
    def test_asks_for_the_code_after_the_password(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        assert people.log_in(client)["Location"] == ASKED
        assert not people.is_in(client)
        assert client.post(ASKED, {"code": people.code(secret)})["Location"] == "/portal"
        assert people.is_in(client)

    @pytest.mark.parametrize("later", [-1, 1])
    def test_accepts_a_code_of_a_clock_that_is_half_a_minute_wrong(
        self, client: Client, lea: User, later: int
    ) -> None:
        secret = people.set_up_app(lea)
        people.log_in(client)
        assert client.post(ASKED, {"code": people.code(secret, later=later)}).status_code == 302

    @pytest.mark.rule("portal.second_factor")
    @pytest.mark.parametrize("later", [0, -1])
    def test_refuses_a_used_code_and_an_earlier_one(self, lea: User, later: int) -> None:
        secret = people.set_up_app(lea)
        first, second = Client(), Client()
        for client in (first, second):
            people.log_in(client)
        now, again = people.code(secret), people.code(secret, later=later)
        assert first.post(ASKED, {"code": now}).status_code == 302
        assert second.post(ASKED, {"code": again}).status_code == 200

    def test_the_code_that_set_up_the_app_cannot_be_used_again(self, client: Client, lea: User) -> None:
        people.log_in(client)
        secret = client.get(SET_UP).context["form"].secret
        code = people.code(secret)
        client.post(SET_UP, {"code": code})
        other = Client()
        people.log_in(other)
        assert other.post(ASKED, {"code": code}).status_code == 200

    def test_accepts_each_recovery_code_once(self, lea: User) -> None:
        people.set_up_app(lea)
        code = people.recovery_codes(lea)[0]
        for expected in (302, 200):
            client = Client()
            people.log_in(client)
            assert client.post(ASKED, {"code": code}).status_code == expected
        assert len(people.recovery_codes(lea)) == 9

    @pytest.mark.rule("portal.second_factor")
    def test_refuses_a_login_that_began_with_the_previous_password(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        people.log_in(client)
        lea.set_password("another bill on the table")
        lea.save()
        refused = client.post(ASKED, {"code": people.code(secret)}, follow=True)
        assert "Your password has changed. Log in with the new one." in refused.content.decode()
        assert not people.is_in(client)

    def test_a_login_without_its_second_factor_can_be_restarted(self, client: Client, lea: User) -> None:
        people.set_up_app(lea)
        people.log_in(client)
        assert client.get("/accounts/login/")["Location"] == ASKED
        client.post("/accounts/logout/")
        assert client.get("/accounts/login/").status_code == 200


class TestRequired:
    @pytest.fixture(autouse=True)
    def _required(self, settings: Settings) -> None:
        settings.SECOND_FACTOR_REQUIRED = True

    @pytest.mark.rule("portal.second_factor")
    @pytest.mark.parametrize("role", Role)
    def test_for_every_role_before_any_other_page(self, client: Client, acme: Merchant, role: Role) -> None:
        user = people.join(acme, role)
        people.log_in(client)
        for path in ("/portal", "/portal/security", "/portal/keys"):
            answer = client.get(path)
            assert answer.status_code == 403 or answer["Location"] == SET_UP
        page = client.get(SET_UP).content.decode()
        assert "You need a second factor" in page and "Back to your security" not in page
        assert PASSKEY in page
        people.set_up_app(user)
        assert people.is_in(client)

    @pytest.mark.rule("portal.second_factor")
    def test_for_a_person_without_a_merchant(self, client: Client) -> None:
        User.objects.create_user("left@acme.example", people.PASSWORD)
        people.log_in(client, email="left@acme.example")
        assert client.get("/accounts/2fa/")["Location"] == SET_UP

    @pytest.mark.rule("portal.second_factor")
    def test_allows_only_the_pages_to_set_one_up(self, client: Client, acme: Merchant) -> None:
        person = people.join(acme)
        person.is_staff = person.is_superuser = True
        person.save()
        opened = set()
        for page in pages():
            methods = ["get"] if page.startswith("/admin/") else ["get", "post"]
            for method in methods:
                if "_auth_user_id" not in client.session:
                    client.force_login(person)
                    people.prove(client, person)
                if is_open(getattr(client, method)(page)):
                    opened.add(page)
        assert opened == OPEN

    def test_is_asked_for_again_after_the_last_was_removed(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        people.log_in(client)
        client.post(ASKED, {"code": people.code(secret)})
        page = client.post("/accounts/2fa/totp/deactivate/", follow=True)
        assert page.redirect_chain[-1][0] == SET_UP

    def test_recovery_codes_on_their_own_do_not_suffice(self, client: Client, lea: User) -> None:
        people.set_up_app(lea)
        Authenticator.objects.filter(type="totp").delete()  # as an operator does
        assert people.log_in(client)["Location"] == "/portal"
        assert client.get("/portal")["Location"] == SET_UP

    @pytest.mark.parametrize("factor", ["app", "passkey"])
    def test_recovery_codes_of_a_lost_factor_end_with_the_next_factor(
        self, client: Client, lea: User, factor: str
    ) -> None:
        people.set_up_app(lea)
        codes = people.recovery_codes(lea)
        Authenticator.objects.filter(type="totp").delete()  # as an operator does
        people.log_in(client)
        if factor == "passkey":
            answer = Device().add(client)
        else:
            answer = client.post(SET_UP, {"code": people.code(client.get(SET_UP).context["form"].secret)})
        assert answer["Location"] == "/accounts/2fa/codes/"
        assert not set(codes) & set(people.recovery_codes(lea))

    def test_for_no_one_in_local_mode(self, client: Client, lea: User, settings: Settings) -> None:
        settings.SECOND_FACTOR_REQUIRED = False
        people.log_in(client)
        assert people.is_in(client)


class TestChanging:
    @pytest.mark.parametrize("path", ["totp/deactivate/", "codes/", "codes/new/", "codes/download/"])
    def test_requires_a_fresh_proof(self, client: Client, lea: User, path: str) -> None:
        secret = people.set_up_app(lea)
        people.log_in(client)
        client.post(ASKED, {"code": people.code(secret)})
        assert client.get(f"/accounts/2fa/{path}").status_code == 200
        prove_long_ago(client)
        asked = client.get(f"/accounts/2fa/{path}")
        assert asked["Location"].startswith("/accounts/reauthenticate/?next=")

    def test_a_code_is_a_proof_too(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        people.log_in(client)
        client.post(ASKED, {"code": people.code(secret)})
        prove_long_ago(client)
        again = f"/accounts/2fa/reauthenticate/?next={SET_UP}"
        assert client.get(again).status_code == 200
        assert client.post(again, {"code": people.code(secret, later=1)})["Location"] == SET_UP
        assert client.get("/accounts/2fa/codes/").status_code == 200

    def test_continues_the_requested_change_after_the_proof(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        old = people.recovery_codes(lea)
        people.log_in(client)
        client.post(ASKED, {"code": people.code(secret)})
        prove_long_ago(client)
        asked = client.post("/accounts/2fa/codes/new/")
        assert people.recovery_codes(lea) == old
        client.post(asked["Location"], {"password": people.PASSWORD})
        assert not set(old) & set(people.recovery_codes(lea))

    def test_removing_the_app_removes_the_codes_and_sends_a_mail(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        people.log_in(client)
        client.post(ASKED, {"code": people.code(secret)})
        page = client.post("/accounts/2fa/totp/deactivate/", follow=True)
        assert page.redirect_chain[-1][0] == "/portal/security"
        assert "Your authenticator app is removed" in page.content.decode()
        assert not Authenticator.objects.exists()
        assert people.mails()[-1].subject.endswith("Your authenticator app was removed")
        assert AuditEntry.objects.filter(action="second_factor_removed").count() == 1

    @pytest.mark.django_db(transaction=True)
    def test_new_codes_end_the_old_ones(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        old = people.recovery_codes(lea)
        people.log_in(client)
        client.post(ASKED, {"code": people.code(secret)})
        client.post("/accounts/2fa/codes/new/")
        assert not set(old) & set(people.recovery_codes(lea))
        assert people.mails()[-1].subject.endswith("New recovery codes were made")
        assert AuditEntry.objects.filter(action="recovery_codes_made").count() == 1


class TestOperators:
    @pytest.fixture
    def olga(self) -> User:
        return User.objects.create_superuser("olga@operators.example", people.PASSWORD)

    def log_in(self, client: Client) -> str:
        asked = client.get("/admin/")
        login = client.get(asked["Location"])["Location"]
        fields = {"login": "olga@operators.example", "password": people.PASSWORD}
        return str(client.post(login, fields)["Location"])

    def test_log_in_at_the_common_login_page(self, client: Client, olga: User) -> None:
        assert self.log_in(client) == "/admin/"
        assert client.get("/admin/").status_code == 200

    def test_without_a_merchant_are_led_to_the_admin(self, client: Client, olga: User) -> None:
        answer = people.log_in(client, email="olga@operators.example")
        assert answer["Location"] == "/admin/"
        assert client.get("/accounts/2fa/").status_code == 200

    def test_set_up_an_app_first_where_it_is_required(
        self, client: Client, olga: User, settings: Settings
    ) -> None:
        settings.SECOND_FACTOR_REQUIRED = True
        self.log_in(client)
        for path in ("/admin/", "/admin/portal/user/"):
            assert client.get(path)["Location"] == SET_UP
        assert client.get(SET_UP).status_code == 200
        people.set_up_app(olga)
        assert client.get("/admin/").status_code == 200

    def test_are_the_only_users_who_can_open_the_admin(self, client: Client, lea: User) -> None:
        people.log_in(client)
        answer = client.get("/admin/", follow=True)
        assert answer.status_code == 403

    def test_cannot_log_in_with_the_admins_own_form(self, client: Client, olga: User) -> None:
        answer = client.post("/admin/login/", {"username": olga.email, "password": people.PASSWORD})
        assert answer.status_code == 302 and not answer.wsgi_request.user.is_authenticated

    def test_change_their_password_on_the_common_page(self, client: Client, olga: User) -> None:
        self.log_in(client)
        assert client.get("/admin/password_change/")["Location"] == "/accounts/password/change/"

    def test_cannot_see_secrets_of_second_factors(self, client: Client, olga: User, lea: User) -> None:
        people.set_up_app(lea)
        self.log_in(client)
        row = Authenticator.objects.get(user=lea, type="totp")
        shown = client.get(f"/admin/mfa/authenticator/{row.pk}/change/").content.decode()
        assert people.EMAIL in shown and row.data["secret"] not in shown
