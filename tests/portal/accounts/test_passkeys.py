"""Passkeys: adding, listing and removing them, and using them to log in and to prove one's identity."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from fido2.webauthn import AuthenticatorData

from payments.models import Merchant, Switch
from portal.accounts import login_limits, passkey_forms
from portal.models import AuditEntry, Role, User
from tests.portal import people
from tests.portal.accounts import device as devices
from tests.portal.accounts.device import ADD, AGAIN, LOG_IN, Device

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.passkeys")]
ASKED = "/accounts/2fa/authenticate/"
CODES = "/accounts/2fa/codes/"
REFUSED = "This passkey did not work."
NOT_VERIFIED = AuthenticatorData.FLAG.UP


@pytest.fixture
def device(lea: User) -> Device:
    """Return Lea's device with her passkey."""
    return devices.give(lea)


def passkeys() -> Any:
    return Authenticator.objects.filter(type=Authenticator.Type.WEBAUTHN)


def prove_long_ago(client: Client, user: User) -> None:
    people.prove(client, user, ago=301)


class TestAdding:
    @pytest.mark.django_db(transaction=True)  # commit, because the mail is sent on commit
    def test_shows_recovery_codes_and_is_recorded_and_mailed(self, client: Client, lea: User) -> None:
        people.log_in(client)
        answer = Device().add(client)
        assert answer["Location"] == CODES
        assert all(code in client.get(CODES).content.decode() for code in people.recovery_codes(lea))
        assert people.mails()[-1].subject.endswith("A passkey was added")
        assert AuditEntry.objects.filter(action="passkey_added").count() == 1
        assert "Added a passkey" in client.get("/portal/audit").content.decode()

    def test_of_a_second_keeps_the_recovery_codes(self, client: Client, lea: User, device: Device) -> None:
        codes = people.recovery_codes(lea)
        device.log_in(client)
        assert Device().add(client, "Key on the ring")["Location"] == "/accounts/2fa/"
        assert people.recovery_codes(lea) == codes
        page = client.get("/portal/security").content.decode()
        assert "Laptop" in page and "Key on the ring" in page and "not used yet" in page

    def test_requires_a_fresh_proof(self, client: Client, lea: User) -> None:
        people.log_in(client)
        prove_long_ago(client, lea)
        assert client.get(ADD)["Location"].startswith("/accounts/reauthenticate/")

    def test_asks_for_a_passkey_that_verifies_its_person(self, client: Client, lea: User) -> None:
        people.log_in(client)
        asked = client.get(ADD).context["js_data"]["creation_options"]["publicKey"]
        assert asked["authenticatorSelection"]["userVerification"] == "required"
        assert asked["authenticatorSelection"]["residentKey"] == "required"
        assert asked["rp"]["id"] == "localhost"
        device = Device()
        device.flags = NOT_VERIFIED
        assert REFUSED in device.add(client).content.decode()
        assert not passkeys().exists()

    def test_names_it_after_the_browser_by_default(self, client: Client, lea: User) -> None:
        people.log_in(client)
        client.defaults["HTTP_USER_AGENT"] = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
        Device().add(client, "")
        assert str(passkeys().get()) == "Firefox on Linux"

    def test_refuses_a_long_name_and_an_eleventh(self, client: Client, lea: User) -> None:
        people.log_in(client)
        assert "at most 60 characters" in Device().add(client, "x" * 61).content.decode()
        for number in range(passkey_forms.MAX_PASSKEYS):
            assert Device().add(client, f"Key {number}").status_code == 302
        assert "Remove one first" in Device().add(client).content.decode()
        assert passkeys().count() == passkey_forms.MAX_PASSKEYS

    def test_page_explains_its_requirements(self, client: Client, lea: User) -> None:
        people.log_in(client)
        page = client.get(ADD, headers=devices.THERE).content.decode()
        assert "A passkey needs a browser with JavaScript." in page
        elsewhere = client.get(ADD, headers={"Host": "127.0.0.1"}).content.decode()
        assert f'href="http://localhost:8000{ADD}"' in elsewhere and "data-passkey=" not in elsewhere


class TestLogin:
    def test_needs_no_password_and_no_code(self, client: Client, lea: User, device: Device) -> None:
        assert device.log_in(client)["Location"] == "/portal"
        assert people.is_in(client)
        assert AuditEntry.objects.filter(action="logged_in", user=lea).exists()
        assert passkeys().get().last_used_at is not None

    def test_redirects_only_within_the_service(self, device: Device) -> None:
        assert device.log_in(Client(), next="/portal/keys")["Location"] == "/portal/keys"
        assert device.log_in(Client(), next="https://evil.example/")["Location"] == "/portal"

    @pytest.mark.parametrize(
        "lie",
        [
            lambda device: setattr(device, "flags", NOT_VERIFIED),
            lambda device: setattr(device, "origin", "https://evil.localhost:8000"),
            lambda device: setattr(device, "origin", "http://localhost:8001"),
            lambda device: setattr(device, "host", "evil.example"),
            lambda device: setattr(device, "key", Device().key),
            lambda device: setattr(device, "credential_id", bytes(32)),
            lambda device: setattr(device, "user_handle", Device().user_handle),
            lambda device: setattr(device, "user_handle", "MDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAw"),
            lambda device: setattr(device, "user_handle", "bm9ib2R5"),
        ],
        ids=[
            "not verified",
            "origin",
            "port",
            "host",
            "key",
            "id",
            "no person",
            "unknown person",
            "odd person",
        ],
    )
    def test_gives_the_same_response_to_every_invalid_answer(
        self, client: Client, device: Device, lie: Callable[[Device], None]
    ) -> None:
        lie(device)
        answer = device.log_in(client)
        assert answer["Location"] == "/accounts/login/"
        page = client.get("/accounts/login/").content.decode()
        assert REFUSED in page and page.count('role="alert"') == 1
        assert not people.is_in(client)

    def test_accepts_an_answer_once_and_only_in_its_own_session(self, client: Client, device: Device) -> None:
        options = devices.challenge(client).json()["request_options"]
        given = {"credential": json.dumps(device.get(options))}
        thief = Client()
        devices.challenge(thief)
        assert thief.post(LOG_IN, given)["Location"] == "/accounts/login/"
        assert client.post(LOG_IN, given)["Location"] == "/portal"
        client.post("/accounts/logout/")
        devices.challenge(client)
        assert client.post(LOG_IN, given)["Location"] == "/accounts/login/"

    def test_names_no_account_in_its_challenge(self, client: Client, device: Device) -> None:
        asked = devices.challenge(client).json()["request_options"]["publicKey"]
        assert asked["userVerification"] == "required" and not asked.get("allowCredentials")
        assert client.get(LOG_IN)["Location"] == "/accounts/login/"

    def test_of_a_closed_account_is_refused(self, client: Client, lea: User, device: Device) -> None:
        User.objects.filter(pk=lea.pk).update(is_active=False)
        assert device.log_in(client)["Location"] == "/accounts/inactive/"
        assert not people.is_in(client)

    def test_is_limited_by_address(self, client: Client, device: Device) -> None:
        (limit,) = login_limits.LIMITS["passkey"]
        for _ in range(limit.quota.maximum):
            login_limits.count_attempt("passkey", account=people.HOME, address=people.HOME)
        home = Client(REMOTE_ADDR=people.HOME)
        refused = devices.challenge(home)
        assert refused.status_code == 429 and "Try again later" in refused.json()["error"]
        assert home.post(LOG_IN, {"credential": "{}"})["Location"] == "/accounts/login/"
        assert device.log_in(Client(REMOTE_ADDR=people.ELSEWHERE))["Location"] == "/portal"

    def test_resets_earlier_failures(self, device: Device) -> None:
        home = Client(REMOTE_ADDR=people.HOME)
        for _ in range(60):
            home.post(LOG_IN, {"credential": json.dumps({})})
        assert device.log_in(home)["Location"] == "/portal"
        home.post("/accounts/logout/")
        for _ in range(60):
            home.post(LOG_IN, {"credential": json.dumps({})})
        assert device.log_in(home)["Location"] == "/portal"

    def test_page_offers_it(self, client: Client) -> None:
        page = client.get("/accounts/login/", headers=devices.THERE).content.decode()
        assert "Log in with a passkey" in page and "<script>" not in page


class TestAfterThePassword:
    def test_is_required_and_logs_in(self, client: Client, lea: User, device: Device) -> None:
        assert people.log_in(client)["Location"] == ASKED
        assert not people.is_in(client)
        assert device.prove(client, ASKED)["Location"] == "/portal"
        assert people.is_in(client)

    def test_a_recovery_code_replaces_it(self, client: Client, lea: User, device: Device) -> None:
        people.log_in(client)
        assert client.post(ASKED, {"code": people.recovery_codes(lea)[0]})["Location"] == "/portal"

    def test_an_app_works_next_to_it(self, client: Client, lea: User, device: Device) -> None:
        people.log_in(client)
        device.prove(client, ASKED)
        setup = client.get("/accounts/2fa/totp/activate/").context["form"].secret
        client.post("/accounts/2fa/totp/activate/", {"code": people.code(setup)})
        other = Client()
        people.log_in(other)
        assert other.post(ASKED, {"code": people.code(setup, later=1)})["Location"] == "/portal"

    def test_of_another_person_is_refused_and_counted(
        self, acme: Merchant, lea: User, device: Device
    ) -> None:
        others = devices.give(people.join(acme, Role.ADMIN, "max@acme.example"))
        client = Client(REMOTE_ADDR=people.HOME)
        people.log_in(client)
        for _ in range(10):
            assert REFUSED in others.prove(client, ASKED).content.decode()
        assert "Too many attempts" in device.prove(client, ASKED).content.decode()
        assert AuditEntry.objects.filter(action="second_factor_locked").count() == 1
        assert not people.is_in(client)

    def test_is_not_offered_to_a_person_without_one(self, client: Client, lea: User) -> None:
        people.set_up_app(lea)
        people.log_in(client)
        page = client.get(ASKED, headers=devices.THERE).content.decode()
        assert "data-passkey=" not in page and 'name="code"' in page


class TestProof:
    def test_is_offered_first_and_continues_the_change(
        self, client: Client, lea: User, device: Device
    ) -> None:
        device.log_in(client)
        prove_long_ago(client, lea)
        codes = people.recovery_codes(lea)
        asked = client.post(f"{CODES}new/")
        assert asked["Location"].startswith(AGAIN)
        assert REFUSED in Device().prove(client, asked["Location"]).content.decode()
        assert people.recovery_codes(lea) == codes
        device.prove(client, asked["Location"])
        assert not set(codes) & set(people.recovery_codes(lea))

    def test_has_alternatives(self, client: Client, lea: User, device: Device) -> None:
        device.log_in(client)
        page = client.get(AGAIN).content.decode()
        assert "Use your password instead" in page and "Use a code instead" in page
        assert "Use a passkey instead" in client.get("/accounts/reauthenticate/").content.decode()

    def test_of_an_operator_is_the_passkey_and_no_password(self, client: Client, acme: Merchant) -> None:
        olga = User.objects.create_superuser("olga@operators.example", people.PASSWORD)
        device = devices.give(olga)
        assert device.log_in(client)["Location"] == "/admin/"
        prove_long_ago(client, olga)
        suspend = {"action": "suspend", "_selected_action": str(acme.pk), "confirmed": "1", "words": "Fraud"}
        asked = client.post("/admin/payments/merchant/", suspend)
        assert asked["Location"].startswith(AGAIN)
        client.post("/accounts/reauthenticate/", {"password": people.PASSWORD})
        assert not Switch.objects.exists()
        device.prove(client, asked["Location"])
        assert Switch.objects.get().reason == "Fraud"

    def test_of_an_operators_login_just_now_is_enough(self, client: Client, acme: Merchant) -> None:
        olga = User.objects.create_superuser("olga@operators.example", people.PASSWORD)
        devices.give(olga).log_in(client)
        suspend = {"action": "suspend", "_selected_action": str(acme.pk), "confirmed": "1", "words": "Fraud"}
        client.post("/admin/payments/merchant/", suspend)
        assert Switch.objects.get().merchant == acme


class TestRemoving:
    def test_of_the_last_removes_the_codes_and_is_mailed(
        self, client: Client, lea: User, device: Device
    ) -> None:
        device.log_in(client)
        address = f"/accounts/2fa/passkeys/{passkeys().get().pk}/remove/"
        assert "Laptop" in client.get(address).content.decode()
        page = client.post(address, follow=True)
        assert page.redirect_chain[-1][0] == "/portal/security"
        assert "Your passkey is removed." in page.content.decode()
        assert not Authenticator.objects.exists()
        assert people.mails()[-1].subject.endswith("A passkey was removed")
        assert AuditEntry.objects.filter(action="passkey_removed").count() == 1
        assert device.log_in(Client())["Location"] == "/accounts/login/"

    def test_keeps_the_codes_of_another_factor(self, client: Client, lea: User, device: Device) -> None:
        device.log_in(client)
        Device().add(client, "Another")
        codes = people.recovery_codes(lea)
        client.post(f"/accounts/2fa/passkeys/{passkeys().earliest('pk').pk}/remove/")
        assert people.recovery_codes(lea) == codes and passkeys().count() == 1

    def test_requires_a_fresh_proof(self, client: Client, lea: User, device: Device) -> None:
        device.log_in(client)
        prove_long_ago(client, lea)
        asked = client.post(f"/accounts/2fa/passkeys/{passkeys().get().pk}/remove/")
        assert asked["Location"].startswith(AGAIN) and passkeys().exists()

    def test_of_another_persons_is_not_found(self, client: Client, acme: Merchant, device: Device) -> None:
        people.join(acme, Role.OWNER, "max@acme.example")
        people.log_in(client, email="max@acme.example")
        for number in (passkeys().get().pk, 0, 10**30):
            assert client.post(f"/accounts/2fa/passkeys/{number}/remove/").status_code == 404
        assert passkeys().count() == 1


def test_the_team_page_counts_it_as_a_second_factor(client: Client, lea: User, device: Device) -> None:
    people.set_up_app(people.join(lea.memberships.get().merchant, Role.ADMIN, "max@acme.example"))
    device.log_in(client)
    page = client.get("/portal/team").content.decode()
    assert page.count("Signs in with a second factor.") == 2 and "No second factor yet." not in page
