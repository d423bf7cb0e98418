"""LOOKUP_KEY is replaced in steps. After each step, every row is found, and each person has one row."""

import ast
import io
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from pytest_django.fixtures import Settings

from checkout.models import Customer, PaymentRequest, Prefill
from config.lib import clock, crypto
from config.lib.crypto import FindableTextField
from config.management.commands import rotate_keys
from hosted_page.models import CardTry, KnownBrowser, OptIn, SignInCode, SmsMessage, SmsStop
from hosted_page.payment_target import PaymentTarget
from hosted_page.privacy import data_subjects, erasure
from hosted_page.sms import outbox, stopped_numbers
from hosted_page.steps import codes, declines
from payments.models import Merchant
from portal import key_check
from portal.models import Canary
from tests import factories, mates
from tests.config.lookup_keys.keys import AMY, EMAIL, FINN, HOME, LEA, NEW, OLD, Keys
from tests.hosted_page.privacy.persons import tick

pytestmark = [pytest.mark.django_db, pytest.mark.rule("secret.keys")]

REWRITTEN = "rotate_keys writes it again from the ciphertext next to it"
LOOKED_UP = "it is looked up under all keys, until it is deleted"
NO_KEY = "it is of a random secret or of a public number, without a key"
COLUMNS = {
    "bank_cardtoken.digest": NO_KEY,
    "checkout_customer.phone": REWRITTEN,
    "checkout_grouplink.token_digest": NO_KEY,
    "checkout_replacedlink.token_digest": NO_KEY,
    "checkout_idempotencykey.request_digest": LOOKED_UP,
    "checkout_paymentrequest.claim_digest": NO_KEY,
    "checkout_paymentrequest.phone": REWRITTEN,
    "checkout_paymentrequest.token_digest": NO_KEY,
    "checkout_prefill.phone": REWRITTEN,
    "hosted_page_cardtry.address_digest": LOOKED_UP,
    "hosted_page_cardtry.phone_digest": LOOKED_UP,
    "hosted_page_cardtry.site_digest": LOOKED_UP,
    "hosted_page_knownbrowser.phone": REWRITTEN,
    "hosted_page_knownbrowser.token_digest": NO_KEY,
    "hosted_page_optin.email_digest": REWRITTEN,
    "hosted_page_sharetake.address_digest": LOOKED_UP,
    "hosted_page_sharetake.site_digest": LOOKED_UP,
    "hosted_page_signincode.browser_digest": NO_KEY,
    "hosted_page_signincode.code_digest": LOOKED_UP,
    "hosted_page_signincode.phone": REWRITTEN,
    "hosted_page_smsmessage.address_digest": LOOKED_UP,
    "hosted_page_smsmessage.phone_digest": LOOKED_UP,
    "hosted_page_smsmessage.range_digest": LOOKED_UP,
    "hosted_page_smsmessage.site_digest": LOOKED_UP,
    "portal_canary.digest": REWRITTEN,
    "portal_invitation.token_digest": NO_KEY,
    "portal_loginattempt.account_digest": LOOKED_UP,
    "portal_loginattempt.address_digest": LOOKED_UP,
    "portal_loginattempt.site_digest": LOOKED_UP,
}
# The call with which config.lib.web.address makes the digests of a caller's networks.
OF_NETWORKS = "network.caller_digests"
# Each module that makes a digest, and the purpose of the digest. hosted_page_smsstop.number is half of an `sms` digest.
PURPOSES = {
    ("config/lib/web/address.py", "purpose"),
    ("checkout/api/idempotency.py", "'request'"),
    ("config/lib/crypto.py", "'key'"),
    ("config/lib/crypto.py", "'text'"),
    ("config/lib/crypto.py", "purpose"),
    ("hosted_page/group/share_claim_limits.py", "'take address'"),
    ("hosted_page/opt_in/consent.py", "'e-mail'"),
    ("hosted_page/privacy/erasure.py", "f'erased {kind}'"),
    ("hosted_page/sms/outbox.py", "'address'"),
    ("hosted_page/sms/outbox.py", "'sms range'"),
    ("hosted_page/sms/outbox.py", "'sms'"),
    ("hosted_page/sms/stopped_numbers.py", "'sms stop'"),
    ("hosted_page/steps/codes.py", "_PURPOSE"),
    ("hosted_page/steps/declines.py", "'card address'"),
    ("hosted_page/steps/declines.py", "'card phone'"),
    ("payments/providers/sandbox/notifications.py", "_PURPOSE"),
    ("portal/accounts/login_limits.py", "'login account'"),
    ("portal/accounts/login_limits.py", "'login address'"),
    ("portal/accounts/session_store.py", "PURPOSE"),
    ("portal/key_check.py", "WORD"),
}


class TestTheInventory:
    def test_has_every_column_that_holds_a_digest(self) -> None:
        found = {
            f"{model._meta.db_table}.{field.column}"
            for model in apps.get_models()
            for field in model._meta.local_fields
            if "digest" in field.name or isinstance(field, FindableTextField)
        }
        assert found == set(COLUMNS)

    def test_has_every_digest_that_the_code_makes(self) -> None:
        root = Path(crypto.__file__).parents[2]
        found = set()
        for app in ("checkout", "config", "hosted_page", "payments", "portal", "webhooks"):
            for path in (root / app).rglob("*.py"):
                text, name = path.read_text(), str(path.relative_to(root))
                makes_digests = "keyed_digest" in text or OF_NETWORKS in text
                if makes_digests and "migrations" not in path.parts:
                    found |= {(name, purpose) for purpose in purposes(ast.parse(text))}
        assert found == PURPOSES

    def test_names_each_column_that_the_command_rewrites(self) -> None:
        places = {
            place.statement("{table}.{column}")
            for place in rotate_keys._places()
            if place.renew is not rotate_keys._reencrypt
        }
        assert places | {"portal_canary.digest"} == {
            name for name, how in COLUMNS.items() if how == REWRITTEN
        }


def purposes(tree: ast.AST) -> Iterator[str]:
    """Yield the source text of the purpose argument in each call that makes a digest."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name = called if called == OF_NETWORKS else called.rpartition(".")[2]
            place = {"keyed_digest": 0, "keyed_digests": 0, "is_keyed_digest": 1, OF_NETWORKS: 0}.get(name)
            if place is not None:
                yield ast.unparse(node.args[place])


def rotate() -> str:
    said = io.StringIO()
    call_command("rotate_keys", stdout=said, stderr=said)
    return said.getvalue()


class World:
    """A row for each column that the command rewrites, written with the old key."""

    def __init__(self, merchant: Merchant) -> None:
        Merchant.objects.filter(pk=merchant.pk).update(opt_in_enabled=True)
        self.order = factories.checkout(Merchant.objects.get(pk=merchant.pk))
        self.lea = codes.person_of(LEA)
        share = mates.split(self.order, 3000)[0]
        PaymentRequest.objects.filter(pk=share.pk).update(phone=FINN)
        Prefill.objects.create(checkout=self.order, phone=AMY)
        KnownBrowser.objects.create(token_digest="t", phone=LEA, proven_at=clock.now())
        codes.send_code(PaymentTarget(self.order), LEA, "browser", HOME)
        tick(self.order, None, EMAIL)

    def check(self) -> None:
        """Fail unless every row is found exactly once with the current keys."""
        assert key_check.database_mismatch() == ""
        assert codes.person_of(LEA) == self.lea and Customer.objects.count() == 1
        assert (
            data_subjects.has_unverified_rows(FINN)
            and data_subjects.has_unverified_rows(AMY)
            and not data_subjects.has_unverified_rows(LEA)
        )
        assert data_subjects.find_person(email=EMAIL.upper()).opt_ins.get().email == EMAIL
        for model in (KnownBrowser, SignInCode):
            assert model._default_manager.filter(phone=LEA).count() == 1, model
            assert model._default_manager.exclude(phone=LEA).count() == 0, model


@pytest.fixture
def world(keys: Keys, acme: Merchant) -> World:
    return World(acme)


class TestTheSteps:
    def test_rewrite_every_digest_and_keep_it_findable(
        self, keys: Keys, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rotate_keys, "ROWS", 1)
        for each in ([OLD], [OLD, NEW], [NEW, OLD]):
            keys.are(*each)
            world.check()
        said = rotate()
        for name, how in COLUMNS.items():
            if how == REWRITTEN and name != "portal_canary.digest":
                assert f"{name}: 1 rewritten" in said, name
        for each in ([NEW, OLD], [OLD, NEW], [NEW]):
            keys.are(*each)
            world.check()
        keys.are(OLD)
        assert "LOOKUP_KEY" in key_check.database_mismatch() and not data_subjects.has_unverified_rows(FINN)

    def test_may_be_repeated(self, keys: Keys, world: World) -> None:
        keys.are(NEW, OLD)
        assert ": 1 rewritten" in rotate()
        again = rotate()
        assert ": 0 rewritten" in again and ": 1 rewritten" not in again

    def test_continue_where_the_command_was_killed(
        self, keys: Keys, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keys.are(NEW, OLD)
        write, calls = rotate_keys._write_all, 0

        def die(*asked: object) -> int:
            nonlocal calls
            calls += bool(asked[1])
            if calls == 4:
                raise KeyboardInterrupt
            return write(*asked)  # type: ignore[arg-type]

        monkeypatch.setattr(rotate_keys, "_write_all", die)
        with pytest.raises(KeyboardInterrupt):
            rotate()
        world.check()
        keys.are(NEW)
        assert "LOOKUP_KEY" in key_check.database_mismatch(), "the old key is needed until a run has ended"
        keys.are(NEW, OLD)
        monkeypatch.setattr(rotate_keys, "_write_all", write)
        assert rotate().count(": 1 rewritten") == 3
        keys.are(NEW)
        world.check()

    def test_include_rows_that_are_added_during_the_rotation(self, keys: Keys, world: World) -> None:
        """Every row is found, no matter whether a process wrote it with the old key or with the new key."""
        keys.are(NEW, OLD)
        mia = codes.person_of("+447700900321")
        keys.are(OLD, NEW)
        assert codes.person_of("+447700900321") == mia
        noa = codes.person_of("+447700900322")
        keys.are(NEW, OLD)
        assert codes.person_of("+447700900322") == noa
        rotate()
        keys.are(NEW)
        assert [codes.person_of(f"+44770090032{last}") for last in (1, 2)] == [mia, noa]
        assert Customer.objects.count() == 3

    def test_report_two_rows_with_the_same_number(self, keys: Keys, world: World) -> None:
        """A number gets a second row if a process does not have the key with which the first row was written."""
        keys.are(NEW)
        other = codes.person_of(LEA)
        keys.are(NEW, OLD)
        said = io.StringIO()
        with pytest.raises(CommandError, match=r"1 rows need a former LOOKUP_KEY\. Keep it in"):
            call_command("rotate_keys", stdout=said, stderr=said)
        words = f"checkout_customer.phone: {world.lea.pk} and {other.pk} have the same value, digested with two keys."
        assert words in said.getvalue()
        assert codes.person_of(LEA) == world.lea, "the first of the two is the person"
        assert data_subjects.find_person(email=EMAIL) and data_subjects.has_unverified_rows(FINN)
        keys.are(NEW)
        assert "LOOKUP_KEY" in key_check.database_mismatch()


class TestTwoProcesses:
    @pytest.mark.django_db(transaction=True)
    def test_create_one_person_for_a_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two processes create the same customer, one with the old key and one with the new key.

        The second process waits for the first, and then finds the row that the first has created.
        """
        mine = threading.local()

        class ThreadSettings:
            @property
            def LOOKUP_KEY(self) -> str:
                return str(mine.keys[0])

            @property
            def LOOKUP_KEY_FALLBACKS(self) -> list[str]:
                return list(mine.keys[1:])

        sealed = crypto.encrypt(LEA)
        monkeypatch.setattr(crypto, "encrypt", lambda _: sealed)
        monkeypatch.setattr(crypto, "decrypt", lambda _: LEA)
        monkeypatch.setattr(crypto, "settings", ThreadSettings())
        found = []

        def later() -> None:
            mine.keys = [NEW, OLD]
            found.append(codes.person_of(LEA).pk)
            connection.close()

        mine.keys = [OLD, NEW]
        thread = threading.Thread(target=later)
        with transaction.atomic():
            person = codes.person_of(LEA)
            thread.start()
            thread.join(0.5)
            assert thread.is_alive() and not found
        thread.join(20)
        assert found == [person.pk] and Customer.objects.count() == 1


class TestAStop:
    @pytest.fixture
    def path(self, keys: Keys) -> str:
        """Return the path of a link to stop texts that was sent before the rotation."""
        return urlsplit(stopped_numbers.stop_link(outbox.number_digest(FINN))).path

    def test_holds_under_the_next_key_and_keeps_its_link(self, keys: Keys, path: str) -> None:
        Client().post(path)
        for each in ([OLD, NEW], [NEW, OLD]):
            keys.are(*each)
            assert stopped_numbers.has_stopped(
                outbox.number_digests(FINN)
            ) and not stopped_numbers.has_stopped(outbox.number_digests(LEA))
        Client().post(path, {"again": "1"})
        assert not stopped_numbers.has_stopped(outbox.number_digests(FINN))
        keys.are(NEW)
        assert Client().get(path).status_code == 404

    def test_is_reported_if_only_a_former_key_finds_it(self, keys: Keys, path: str, world: World) -> None:
        SmsStop.objects.create(number="0" * 30, stopped_at=clock.now())
        Client().post(path)
        assert "no texts" not in rotate()
        keys.are(NEW, OLD)
        Client().post(urlsplit(stopped_numbers.stop_link(outbox.number_digest(AMY))).path)
        assert (
            "2 numbers that have stopped texts are found only with a former LOOKUP_KEY. Keep it" in rotate()
        )
        assert SmsStop.objects.values("key_mark").distinct().count() == 3

    def test_from_an_old_link_is_found_under_the_old_key(self, keys: Keys, path: str) -> None:
        keys.are(NEW, OLD)
        Client().post(path)
        assert stopped_numbers.count_under_former_keys() == 1


class TestAnErasure:
    def test_finds_texts_and_cards_of_every_key(self, keys: Keys, world: World) -> None:
        target = PaymentTarget(world.order)
        declines.count_card_try(target, Customer(phone=LEA), "tok", HOME)
        ends_at = clock.now() + timedelta(hours=1)
        outbox.queue_message(
            outbox.MessageRequest(SmsMessage.Kind.INVITATION, LEA, target, "Hello", ends_at, HOME)
        )
        keys.are(NEW, OLD)
        rotate()
        assert SmsMessage.objects.exclude(phone_digest="").exists() and CardTry.objects.exists()
        erasure.erase(data_subjects.find_person(phone=LEA))
        assert not SmsMessage.objects.exclude(phone_digest="").exists() and not CardTry.objects.exists()

    def test_of_the_old_key_is_repeated_after_a_restore(
        self, keys: Keys, tmp_path: Path, settings: Settings
    ) -> None:
        settings.ERASURES_FILE = str(tmp_path / "erasures")
        lea = codes.person_of(LEA)
        erasure.erase(data_subjects.find_person(phone=LEA))
        Customer.objects.filter(pk=lea.pk).update(phone=LEA, erased_at=None)
        keys.are(NEW, OLD)
        assert [reasons for _, reasons in erasure.erase_recorded_again()] == [[]]
        assert Customer.objects.get(pk=lea.pk).phone is None


class TestAnOptIn:
    def test_by_the_same_address_belongs_to_the_same_person(self, keys: Keys, world: World) -> None:
        keys.are(NEW, OLD)
        tick(world.order, None, EMAIL)
        assert OptIn.objects.count() == 2 and OptIn.objects.values("person").distinct().count() == 1

    def change(self, **values: str) -> None:
        with transaction.atomic():
            OptIn.objects.update(**values)

    @pytest.mark.parametrize("digest", ["another", "A" * 64, "0" * 63])
    def test_refuses_an_invalid_digest(self, world: World, digest: str) -> None:
        with pytest.raises(IntegrityError, match="append-only"):
            self.change(email_digest=digest)

    def test_that_was_erased_gets_no_digest(self, world: World) -> None:
        self.change(email_digest="")
        with pytest.raises(IntegrityError, match="append-only"):
            self.change(email_digest="0" * 64)

    def test_is_updated_only_if_no_other_process_was_faster(self, world: World) -> None:
        tick_ = OptIn.objects.get()
        steps = (
            ("a" * 64, "b" * 64, False),
            (tick_.email_digest, "b" * 64, True),
            (tick_.email_digest, "c" * 64, False),
        )
        with connection.cursor() as cursor:
            for former, digest, is_done in steps:
                cursor.execute("SELECT digest_opt_in_again(%s, %s, %s)", [tick_.pk, former, digest])
                assert cursor.fetchone() == (is_done,)
        assert OptIn.objects.get().email_digest == "b" * 64


def test_a_canary_of_another_key_asks_for_the_former_key(keys: Keys) -> None:
    keys.are(NEW)
    assert key_check.database_mismatch().endswith(
        "Add that one to LOOKUP_KEY_FALLBACKS, and run manage.py rotate_keys."
    )
    keys.are(NEW, OLD)
    assert key_check.database_mismatch() == "" and Canary.objects.count() == 1
