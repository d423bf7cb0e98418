"""Each process hashes only one password at a time, for all of its callers."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, get_hasher, make_password
from django.core.management import call_command
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from config import settings as configured
from config.lib.bulkhead import Bulkhead
from payments.models import Merchant
from portal import team
from portal.accounts import password_slots
from portal.accounts.password_slots import TooManyLogins
from portal.models import Invitation, LoginAttempt, Membership, Role, User
from tests.conftest import Api
from tests.portal import people
from tests.portal.oauth.test_token import ask, credentials
from tests.portal.people import EMAIL, PASSWORD

NEW = "another bill on the table"


@pytest.fixture(autouse=True)
def _service_hasher(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the service's password hasher, with only one iteration."""
    settings.PASSWORD_HASHERS = configured.PASSWORD_HASHERS
    monkeypatch.setattr(password_slots.PasswordHasher, "iterations", 1)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that occupies all slots."""

    def fill() -> None:
        monkeypatch.setattr(password_slots, "SLOTS", Bulkhead(0))

    return fill


def invited_by(owner: User) -> str:
    """Invite a person, and return the path of the link in the mail."""
    team.invite(Membership.objects.get(user=owner), "dora@acme.example", Role.VIEWER)
    return people.mailed(r"/join/\S+")


def refused(answer: Any) -> None:
    assert answer.status_code == 429 and answer["Retry-After"] == "3"
    assert "Many people are logging in right now" in answer.content.decode()


class SlowHash:
    """A hash function that waits until the test lets it end, and that counts parallel calls."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)
        self.running, self.peak = 0, 0

    def encode(self, _hasher: object, _password: str, _salt: str, _iterations: int | None = None) -> str:
        self.running += 1
        self.peak = max(self.peak, self.running)
        self.begun.release()
        assert self.may_end.acquire(timeout=10)
        self.running -= 1
        return "pbkdf2_sha256$1$salt$hash"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowHash:
    made = SlowHash()
    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", made.encode)
    return made


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as made:
        yield made


def hashed(network: str = "") -> str:
    """Hash a password for a caller from this network, by default from a network without other callers."""
    password_slots._network.set(network or str(uuid4()))
    try:
        return make_password(PASSWORD)
    except TooManyLogins:
        return "refused"
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
class TestSlots:
    @pytest.mark.rule("limit.passwords")
    def test_one_password_is_hashed_at_a_time(self, slow: SlowHash, pool: ThreadPoolExecutor) -> None:
        asked = [pool.submit(hashed) for _ in range(5)]
        for _ in asked:
            assert slow.begun.acquire(timeout=10)
            assert not slow.begun.acquire(blocking=False), "a second one runs"
            slow.may_end.release()
        assert {one.result(10) for one in asked} == {"pbkdf2_sha256$1$salt$hash"} and slow.peak == 1

    @pytest.mark.rule("limit.passwords")
    def test_only_a_few_threads_wait_and_others_are_refused_at_once(
        self, slow: SlowHash, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(password_slots, "SLOTS", Bulkhead(1, queue=password_slots.QUEUE))
        monkeypatch.setattr("config.lib.bulkhead.WAIT_SECONDS", 60)
        asked = [pool.submit(hashed) for _ in range(20)]
        assert slow.begun.acquire(timeout=10)
        while sum(one.done() for one in asked) < 20 - 1 - password_slots.QUEUE:
            assert not any(one.done() and one.result() != "refused" for one in asked)
        slow.may_end.release(1 + password_slots.QUEUE)
        assert [one.result(10) for one in asked].count("refused") == 20 - 1 - password_slots.QUEUE

    @pytest.mark.rule("limit.passwords")
    def test_one_network_can_take_only_a_few_places(
        self, slow: SlowHash, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("config.lib.bulkhead.WAIT_SECONDS", 60)
        asked = [pool.submit(hashed, "10.0.0.1") for _ in range(12)]
        assert slow.begun.acquire(timeout=10)
        while sum(one.done() for one in asked) < 12 - password_slots.PER_NETWORK:
            pass
        neighbour = pool.submit(hashed, "10.0.0.2")
        slow.may_end.release(1 + password_slots.PER_NETWORK)
        assert neighbour.result(10) != "refused"
        assert [one.result(10) for one in asked].count("refused") == 12 - password_slots.PER_NETWORK

    def test_the_queue_of_the_service_is_bounded(self) -> None:
        assert (password_slots.SLOTS.slots, password_slots.SLOTS._queue) == (1, password_slots.QUEUE)

    def test_a_slot_is_released_after_a_failed_hash(self) -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="salt"):
                get_hasher().encode(PASSWORD, "with a $")
        assert hashed().startswith("pbkdf2_sha256$1$")

    def test_checks_hardened_checks_and_upgrades_take_a_slot_too(
        self, full: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = make_password(PASSWORD)
        full()
        hasher = get_hasher()
        for act in (hasher.verify, hasher.harden_runtime):
            monkeypatch.setattr(password_slots.PasswordHasher, "iterations", 2)
            with pytest.raises(TooManyLogins):
                act(PASSWORD, kept)


def test_hashes_of_the_django_hasher_are_still_accepted() -> None:
    kept = PBKDF2PasswordHasher().encode(PASSWORD, "salt", 1)
    assert get_hasher().verify(PASSWORD, kept) and get_hasher().algorithm == "pbkdf2_sha256"


def test_the_slot_hasher_is_the_first_hasher_of_the_service() -> None:
    assert configured.PASSWORD_HASHERS[0] == "portal.accounts.password_slots.PasswordHasher"


@pytest.mark.django_db
class TestPages:
    @pytest.mark.rule("limit.passwords")
    @pytest.mark.parametrize("email", [EMAIL, "nobody@acme.example"])
    def test_a_login_is_refused_and_not_counted(
        self, client: Client, lea: User, full: Callable[[], None], email: str
    ) -> None:
        people.log_in(Client(), "wrong", email=email)
        full()
        for _ in range(12):
            refused(people.log_in(client, email=email))
        assert LoginAttempt.objects.count() == 1, "the wrong password before is still counted"

    def test_a_refused_login_keeps_its_redirect_target(
        self, client: Client, lea: User, full: Callable[[], None]
    ) -> None:
        full()
        answer = client.post("/accounts/login/?next=/portal/keys", {"login": EMAIL, "password": PASSWORD})
        assert 'href="/accounts/login/?next=/portal/keys"' in answer.content.decode()

    @pytest.mark.rule("limit.passwords")
    def test_a_proof_of_identity_is_refused_and_not_counted(
        self, client: Client, lea: User, full: Callable[[], None]
    ) -> None:
        people.log_in(client)
        full()
        for _ in range(12):
            refused(client.post("/accounts/reauthenticate/?next=/portal", {"password": PASSWORD}))
        assert not LoginAttempt.objects.exists()

    def test_a_change_is_refused_and_not_counted(
        self, client: Client, lea: User, full: Callable[[], None]
    ) -> None:
        people.log_in(client)
        full()
        sent = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
        refused(client.post("/accounts/password/change/", sent))
        assert not LoginAttempt.objects.exists()

    def test_a_reset_is_refused_and_its_link_still_works(
        self, client: Client, lea: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client.post("/accounts/password/reset/", {"email": EMAIL})
        path = people.mailed(r"/accounts/password/reset/key/\S+")
        form = client.get(path, follow=True).redirect_chain[-1][0]
        with monkeypatch.context() as patch:
            patch.setattr(password_slots, "SLOTS", Bulkhead(0))
            refused(client.post(form, {"password1": NEW, "password2": NEW}))
        client.post(form, {"password1": NEW, "password2": NEW})
        assert people.log_in(client, NEW).status_code == 302

    def test_joining_is_refused_and_the_invitation_stays_open(
        self, client: Client, lea: User, full: Callable[[], None]
    ) -> None:
        path = invited_by(lea)
        full()
        refused(client.post(path, {"password": NEW}))
        assert Invitation.objects.get().ended_at is None and User.objects.count() == 1

    def test_the_token_endpoint_waits_for_no_slot(self, api: Api, full: Callable[[], None]) -> None:
        full()
        for changes, status in (({}, 200), ({"client_secret": "wrong"}, 401), ({"client_id": "x"}, 401)):
            assert ask(credentials(api, **changes)).status_code == status

    def test_a_new_merchants_password_takes_a_slot(self, full: Callable[[], None]) -> None:
        full()
        with pytest.raises(TooManyLogins):
            call_command("create_merchant", "Acme", "--email", EMAIL)
        assert not User.objects.exists() and not Merchant.objects.exists()

    def test_a_person_who_waits_to_join_holds_no_transaction(
        self, client: Client, lea: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = invited_by(lea)
        outer, depths = len(connection.savepoint_ids), list[int]()
        encode = PBKDF2PasswordHasher.encode

        def noting(hasher: Any, *arguments: Any) -> str:
            depths.append(len(connection.savepoint_ids))
            return encode(hasher, *arguments)

        monkeypatch.setattr(PBKDF2PasswordHasher, "encode", noting)
        assert client.post(path, {"password": NEW}).status_code == 302
        assert depths == [outer]
