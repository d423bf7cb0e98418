"""Limits on guesses of passwords and codes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from pytest_django.fixtures import Settings

from portal import tasks
from portal.accounts import login_limits
from portal.models import AuditEntry, LoginAttempt, User
from tests.factories import MerchantFactory
from tests.portal import people
from tests.portal.people import ELSEWHERE, EMAIL, HOME, PASSWORD

MANY = 100
AT_ONCE = 20


def pass_time(span: timedelta) -> None:
    LoginAttempt.objects.update(created_at=F("created_at") - span)


def fail(times: int, *, email: str = EMAIL, at: str = HOME) -> None:
    for _ in range(times):
        people.log_in(Client(), "wrong", email=email, at=at)


@pytest.mark.django_db
class TestPair:
    @pytest.mark.rule("portal.login")
    def test_ten_failures_lock_it_even_for_the_right_password(self, client: Client, lea: User) -> None:
        fail(10)
        assert "Wait 30 minutes" in people.log_in(client).content.decode()
        assert LoginAttempt.objects.count() == 10, "a refused try counts no further"

    def test_nine_failures_do_not_lock_it(self, client: Client, lea: User) -> None:
        fail(9)
        assert people.log_in(client).status_code == 302

    @pytest.mark.rule("portal.login")
    def test_is_locked_for_thirty_minutes_from_the_tenth(self, client: Client, lea: User) -> None:
        fail(9)
        pass_time(timedelta(minutes=29))
        fail(1)
        pass_time(timedelta(minutes=29, seconds=50))
        assert people.log_in(client).status_code == 200
        pass_time(timedelta(seconds=11))
        assert people.log_in(client).status_code == 302

    def test_the_owner_still_gets_in_from_elsewhere(self, client: Client, lea: User) -> None:
        fail(10, at=ELSEWHERE)
        assert people.log_in(client).status_code == 302

    def test_a_right_password_forgives_the_wrong_ones_before(self, client: Client, lea: User) -> None:
        fail(9)
        people.log_in(client)
        assert not LoginAttempt.objects.exists()

    def test_is_the_same_for_an_account_that_does_not_exist(self, client: Client, lea: User) -> None:
        fail(10, email="nobody@acme.example")
        page = people.log_in(client, email="Nobody@acme.example ")
        assert "Wait 30 minutes" in page.content.decode()

    def test_counts_the_addresses_of_one_ipv6_network_as_one(self, client: Client, lea: User) -> None:
        for number in range(10):
            fail(1, at=f"2001:db8:0:1::{number:x}")
        assert people.log_in(client, at="2001:db8:0:1:ffff::1").status_code == 200
        assert people.log_in(client, at="2001:db8:0:2::1").status_code == 302

    def test_a_new_password_by_mail_unlocks_it(self, client: Client, lea: User) -> None:
        fail(10)
        client.post("/accounts/password/reset/", {"email": EMAIL})
        path = people.mailed(r"/accounts/password/reset/key/\S+")
        form = client.get(path, follow=True).redirect_chain[-1][0]
        new = "another bill on the table"
        client.post(form, {"password1": new, "password2": new})
        assert people.log_in(client, new).status_code == 302


@pytest.mark.django_db
class TestAccount:
    def fail_from_everywhere(self, email: str = EMAIL) -> None:
        for number in range(5):
            fail(10, email=email, at=f"10.1.0.{number}")

    @pytest.mark.rule("portal.login")
    @pytest.mark.parametrize("email", [EMAIL, "nobody@acme.example"])
    def test_fifty_failures_ask_for_a_code_by_mail(self, client: Client, lea: User, email: str) -> None:
        self.fail_from_everywhere(email)
        page = people.log_in(client, email=email).content.decode()
        assert "Log in with a code by e-mail</button>" in page and 'type="password"' not in page

    def test_the_mailed_code_still_logs_the_owner_in(self, client: Client, lea: User) -> None:
        self.fail_from_everywhere()
        client.post("/accounts/login/code/", {"email": EMAIL})
        client.post("/accounts/login/code/confirm/", {"code": people.mailed(r"\b\d{8}\b")})
        assert people.is_in(client)

    def test_asks_for_the_code_for_an_hour(self, client: Client, lea: User) -> None:
        self.fail_from_everywhere()
        pass_time(timedelta(minutes=59))
        assert people.log_in(client).status_code == 200
        pass_time(timedelta(minutes=2))
        assert people.log_in(client).status_code == 302

    def test_a_logged_in_person_can_still_confirm_by_password(self, client: Client, lea: User) -> None:
        people.log_in(client)
        self.fail_from_everywhere()
        answer = client.post("/accounts/reauthenticate/?next=/portal/security", {"password": PASSWORD})
        assert answer.status_code == 302

    def test_one_address_that_tries_many_accounts_is_refused(self, client: Client, lea: User) -> None:
        for number in range(50):
            fail(2, email=f"{number}@acme.example")
        assert "from your network" in people.log_in(client).content.decode()
        assert people.log_in(client, at=ELSEWHERE).status_code == 302


@pytest.mark.django_db
class TestOthers:
    def test_a_password_asked_for_again_has_ten_tries(self, client: Client, lea: User) -> None:
        people.log_in(client)
        for _ in range(10):
            client.post("/accounts/reauthenticate/?next=/portal", {"password": "wrong"})
        page = client.post("/accounts/reauthenticate/?next=/portal", {"password": PASSWORD})
        assert "Ten wrong passwords. Wait 30 minutes." in page.content.decode()

    def test_a_mailed_code_has_three_tries(self, client: Client, lea: User) -> None:
        client.post("/accounts/login/code/", {"email": EMAIL})
        right = people.mailed(r"\b\d{8}\b")
        for _ in range(3):
            client.post("/accounts/login/code/confirm/", {"code": "00000000"})
        client.post("/accounts/login/code/confirm/", {"code": right})
        assert not people.is_in(client)

    def test_the_app_has_ten_tries_and_the_lock_is_in_the_audit_log(self, client: Client, lea: User) -> None:
        secret = people.set_up_app(lea)
        people.log_in(client)
        for _ in range(10):
            client.post("/accounts/2fa/authenticate/", {"code": "000000"})
        page = client.post("/accounts/2fa/authenticate/", {"code": people.code(secret)})
        assert "Too many wrong codes" in page.content.decode() and not people.is_in(client)
        assert AuditEntry.objects.filter(action="second_factor_locked").count() == 1

    @pytest.mark.parametrize("path", ["password/reset/", "login/code/"])
    def test_five_mails_an_hour_are_asked_for(self, lea: User, path: str) -> None:
        for email in (EMAIL, "nobody@acme.example"):
            answers = [Client().post(f"/accounts/{path}", {"email": email}) for _ in range(6)]
            assert [answer.status_code for answer in answers] == [302] * 5 + [200]
            assert "several times within an hour" in answers[-1].content.decode()
        assert len(people.mails()) == 10

    def test_strangers_do_not_keep_the_owner_from_a_code(self, client: Client, lea: User) -> None:
        for _ in range(6):
            Client().post("/accounts/login/code/", {"email": EMAIL}, REMOTE_ADDR=ELSEWHERE)
        assert client.post("/accounts/login/code/", {"email": EMAIL}, REMOTE_ADDR=HOME).status_code == 302

    def test_many_strangers_do_not_keep_the_owner_from_a_code_at_a_known_address(
        self, client: Client, lea: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        people.log_in(client, at=HOME)
        for number in range(20):
            Client().post("/accounts/login/code/", {"email": EMAIL}, REMOTE_ADDR=f"10.9.0.{number}")
        asked = {
            at: [Client().post("/accounts/login/code/", {"email": EMAIL}, REMOTE_ADDR=at) for _ in range(6)]
            for at in (ELSEWHERE, HOME)
        }
        assert [answer.status_code for answer in asked[ELSEWHERE]] == [200] * 6
        assert [answer.status_code for answer in asked[HOME]] == [302] * 5 + [200]
        LoginAttempt.objects.filter(
            address_digest=LoginAttempt.objects.latest("created_at").address_digest
        ).delete()
        # Make HOME an unknown address, as if the last login from this address were long ago.
        monkeypatch.setattr(login_limits, "KNOWN_ADDRESS_PERIOD", timedelta(0))
        assert Client().post("/accounts/login/code/", {"email": EMAIL}, REMOTE_ADDR=HOME).status_code == 200

    def test_attempts_contain_no_typed_text(self, lea: User) -> None:
        fail(1, email="my-password-in-the-wrong@field.example")
        row = LoginAttempt.objects.values_list("account_digest", "address_digest").get()
        assert all(len(digest) == 64 for digest in row)

    def test_old_attempts_are_deleted(self, lea: User) -> None:
        fail(1)
        pass_time(login_limits.RETENTION - timedelta(minutes=1))
        fail(1)
        tasks.delete_login_attempts()
        assert LoginAttempt.objects.count() == 2
        pass_time(timedelta(minutes=2))
        tasks.delete_login_attempts()
        assert LoginAttempt.objects.count() == 1


def call_in_parallel(call: Callable[[int], object], times: int = MANY) -> None:
    """Call the function `times` times, several calls in parallel, each with its own database connection."""

    def call_and_close(number: int) -> None:
        try:
            call(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(call_and_close, range(times)))


@pytest.mark.django_db(transaction=True)
class TestHundredAtOnce:
    @pytest.fixture
    def owner(self, settings: Settings) -> Iterator[User]:
        yield people.join(MerchantFactory.create(name="Acme Tickets"))

    def looked_at(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return a list to which each password is added when the service checks it."""
        compared: list[str] = []
        check = User.check_password

        def record_and_check(user: User, raw: str) -> bool:
            compared.append(raw)
            return check(user, raw)

        monkeypatch.setattr(User, "check_password", record_and_check)
        return compared

    def test_passwords_of_one_pair(self, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
        compared = self.looked_at(monkeypatch)
        call_in_parallel(lambda number: people.log_in(Client(), f"guess {number}"))
        assert len(compared) == LoginAttempt.objects.count() == 10

    @pytest.mark.long
    def test_passwords_from_many_addresses(self, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
        compared = self.looked_at(monkeypatch)
        call_in_parallel(lambda number: people.log_in(Client(), f"guess {number}", at=f"10.2.0.{number}"))
        assert len(compared) == LoginAttempt.objects.count() == 50

    def test_codes_of_the_app(self, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
        people.set_up_app(owner)
        client = Client()
        people.log_in(client)
        cookies = client.cookies.output(header="", sep=";")
        call_in_parallel(lambda number: self.guess("2fa/authenticate/", f"{number:06}", cookies))
        assert LoginAttempt.objects.filter(kind="second_factor").count() == 10

    @pytest.mark.long
    def test_codes_by_mail(self, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
        client = Client()
        client.post("/accounts/login/code/", {"email": EMAIL})
        cookies = client.cookies.output(header="", sep=";")
        call_in_parallel(lambda number: self.guess("login/code/confirm/", f"{number:08}", cookies))
        assert LoginAttempt.objects.filter(kind="mailed_code").count() <= 3

    def test_one_code_of_the_app_logs_in_only_once(self, owner: User) -> None:
        secret = people.set_up_app(owner)
        clients = [Client() for _ in range(8)]
        for client in clients:
            people.log_in(client)
        right = people.code(secret)
        call_in_parallel(
            lambda number: clients[number].post("/accounts/2fa/authenticate/", {"code": right}), 8
        )
        assert sum(people.is_in(client) for client in clients) == 1

    def guess(self, path: str, code: str, cookies: str) -> None:
        client = Client()
        client.cookies.load(cookies)
        client.post(f"/accounts/{path}", {"code": code}, REMOTE_ADDR=HOME)
