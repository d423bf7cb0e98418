"""During a rotation of LOOKUP_KEY, a limit counts the rows that were written with any of the keys.

The count therefore does not start again from zero.
"""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from checkout.models import Checkout, Customer
from config.lib import clock
from config.lib.quota import Limit
from hosted_page.group import share_claim_limits
from hosted_page.models import CardTry, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import limits, outbox
from hosted_page.steps import codes, declines
from payments.models import Merchant
from payments.provider import ForgedNotification
from payments.providers.sandbox import notifications
from portal.accounts import login_limits
from tests import factories
from tests.config.lookup_keys.keys import EMAIL, FINN, HOME, LEA, NEW, OLD, Keys
from tests.conftest import Api

pytestmark = [pytest.mark.django_db, pytest.mark.rule("secret.keys")]


# Each of these functions adds one row to the count of a limit, with the current keys. It raises an exception if the
# limit has already counted two rows, with any key.
def log_in() -> None:
    login_limits.count_attempt("password", account=EMAIL, address=HOME)


def take_share() -> None:
    with transaction.atomic():
        share_claim_limits.count_claim(HOME)


ORDERS: dict[str, Checkout] = {}


def give_card(phone: str = LEA, address: str = HOME) -> None:
    target = PaymentTarget(ORDERS["order"])
    with transaction.atomic():
        declines.count_card_try(target, Customer(phone=phone), str(uuid4()), address)


def give_card_of_another() -> None:
    give_card(phone=f"+44770090020{CardTry.objects.count()}")


def give_card_elsewhere() -> None:
    give_card(address=f"198.51.100.{CardTry.objects.count()}")


def text(phone: str = LEA, address: str = HOME) -> None:
    target, now = PaymentTarget(ORDERS["order"]), clock.now()
    kind = SmsMessage.Kind.INVITATION
    with transaction.atomic():
        outbox.queue_message(
            outbox.MessageRequest(kind, phone, target, "Hello", now + timedelta(hours=1), address)
        )


def text_another() -> None:
    """Queue an SMS message to a phone number next to the first one. The request comes from a new address."""
    sent = SmsMessage.objects.count()
    text(f"{LEA[:-1]}{sent}", f"198.51.100.{sent}")


def text_from_here() -> None:
    sent = SmsMessage.objects.count()
    text(f"+4477009{sent}0123", HOME)


COUNTED = {
    "logins": (log_in, login_limits.TooManyAttempts, "password"),
    "shares that are taken": (take_share, share_claim_limits.TooManyClaims, "Too many shares"),
    "cards from an address": (give_card_of_another, declines.TooManyDeclines, "Too many cards"),
    "cards of a number": (give_card_elsewhere, declines.TooManyDeclines, "Too many cards"),
    "texts to a number": (text, limits.TooManySmsMessages, "We cannot send more texts to this number"),
    "texts to a range": (text_another, limits.TooManySmsMessages, "We cannot text this number"),
    "texts from an address": (text_from_here, limits.TooManySmsMessages, "from your network"),
}


class TestALimit:
    @pytest.fixture(autouse=True)
    def _two(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
        two, many = Limit(2, timedelta(hours=1)), Limit(100, timedelta(hours=1))
        monkeypatch.setitem(
            login_limits.LIMITS,
            "password",
            (login_limits._build_limit(login_limits.PAIR, 2, timedelta(hours=1)),),
        )
        monkeypatch.setattr(share_claim_limits, "PER_ADDRESS", two)
        monkeypatch.setattr(declines, "PER_ADDRESS", two)
        monkeypatch.setattr(declines, "PER_PHONE", two)
        monkeypatch.setattr(limits, "PER_NUMBER", (two, many))
        monkeypatch.setattr(limits, "PER_ADDRESS", two)
        settings.SMS_RANGE_BUDGET = 2
        ORDERS["order"] = factories.checkout(acme)

    @pytest.mark.parametrize("counted", COUNTED)
    @pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)], ids=["read both", "write new"])
    def test_includes_tries_counted_under_another_key(
        self, keys: Keys, counted: str, order: tuple[str, str]
    ) -> None:
        act, refused, words = COUNTED[counted]
        for key in (OLD, NEW):
            keys.are(key)
            act()
        keys.are(*order)
        with pytest.raises(refused, match=words):
            act()
        keys.are(NEW)
        act()

    def test_of_logins_is_reset_under_every_key(self, keys: Keys) -> None:
        log_in()
        keys.are(NEW, OLD)
        login_limits.clear_attempts(login_limits.count_attempt("password", account=EMAIL, address=HOME))
        for _ in range(2):
            log_in()
        keys.are(OLD, NEW)
        login_limits.forgive_account(EMAIL)
        log_in()


class TestShortLivedRows:
    def test_card_try_is_found_under_the_next_key(self, keys: Keys, held: Checkout) -> None:
        assert held.payment
        lea = Customer(phone=LEA)
        declines.count_card_try(PaymentTarget(held), lea, held.payment.card_token, HOME)
        keys.are(NEW, OLD)
        assert declines.was_tried_by(lea, held.payment)
        assert not declines.was_tried_by(Customer(phone=FINN), held.payment)

    def test_code_is_accepted_under_the_next_key(self, keys: Keys, unpaid: Checkout) -> None:
        sent = codes.send_code(PaymentTarget(unpaid), LEA, "browser", HOME)
        keys.are(NEW, OLD)
        waiting = codes.waiting_code(unpaid.pk, "browser")
        assert waiting is not None
        with pytest.raises(codes.WrongCode):
            codes.verify(waiting, "nothing")
        assert codes.verify(waiting, sent.shown_code).person.phone == LEA

    def test_call_is_replayed_under_the_next_key(self, keys: Keys, api: Api) -> None:
        body = factories.order(customer={"phone": LEA})
        made = api.post("checkouts", body, idempotency_key="k")
        keys.are(NEW, OLD)
        again = api.post("checkouts", body, idempotency_key="k")
        assert (again.status_code, again.json()) == (201, made.json())
        other = api.post("checkouts", factories.order(customer={"phone": FINN}), idempotency_key="k")
        assert other.json()["error"]["code"] == "idempotency_key_reused"

    def test_message_of_the_sandbox_bank_is_accepted(self, keys: Keys) -> None:
        body = b'{"id": "n", "payment": "%s"}' % str(uuid4()).encode()
        signed = notifications.sign(body, int(clock.now().timestamp()))
        keys.are(NEW, OLD)
        assert notifications.read_message(signed, body).payment
        keys.are(NEW)
        with pytest.raises(ForgedNotification):
            notifications.read_message(signed, body)
