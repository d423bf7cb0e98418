"""How texts are sent, from the request to the carrier."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import cancellations, captures
from checkout.models import Checkout
from config.lib import quota
from config.lib.bulkhead import Bulkhead
from hosted_page import tasks
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import limits, outbox, senders, sending
from hosted_page.sms.senders import InDoubt, NotAccepted, Refused
from hosted_page.steps import codes as sign_in
from hosted_page.steps.phone import parse_phone
from payments import operator_stops
from payments.models import Merchant, Switch
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import PHONE, Payer, words
from tests.hosted_page.sms.test_outbox import Network, send_all
from tests.journeys import polling

pytestmark = pytest.mark.django_db
LEA = "+447700900123"


def emptied() -> list[bool]:
    return [text.phone is None and text.body is None and text.ended_at is not None for text in rows()]


def rows() -> list[SmsMessage]:
    return list(SmsMessage.objects.order_by("created_at"))


def failing(error: Exception) -> Callable[..., None]:
    def send(*_: str, **__: str) -> None:
        raise error

    return send


class TestACode:
    @pytest.mark.rule("sms.outbox")
    def test_is_not_sent_within_the_request(self, unpaid: Checkout, carrier: Network) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        assert carrier.sent == {}
        send_all()
        [(phone, text)] = carrier.sent.values()
        assert phone == LEA and "is your code for Acme Tickets" in text

    @pytest.mark.rule("sms.code_words")
    def test_is_tied_to_the_pages_host_by_its_last_line(self, unpaid: Checkout, carrier: Network) -> None:
        lea = Payer(unpaid)
        lea.post("/phone", phone=PHONE)
        send_all()
        [(_, text)] = carrier.sent.values()
        host = urlsplit(settings.CHECKOUT_PAGE_URL).hostname
        assert text.splitlines()[-2:] == ["", f"@{host} #{text[:6]}"]

    @pytest.mark.rule("sms.sealed")
    def test_is_stored_encrypted_and_deleted_once_sent(self, unpaid: Checkout, carrier: Network) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        with connection.cursor() as cursor:
            cursor.execute("SELECT t::text FROM hosted_page_smsmessage t")
            (kept,) = cursor.fetchone()
        assert "7700900123" not in kept and "is your code" not in kept
        assert (rows()[0].phone, rows()[0].sent_at) == (LEA, None)
        send_all()
        assert emptied() == [True] and rows()[0].sent_at is not None

    @pytest.mark.rule("sms.once")
    @pytest.mark.parametrize("fault", ["the carrier refuses", "the sender dies"])
    def test_is_never_sent_twice(self, unpaid: Checkout, carrier: Network, fault: str) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        if fault == "the sender dies":
            assert sending.claim() is not None
        else:
            carrier.is_down = True
            send_all()
            carrier.is_down = False
        send_all()
        assert carrier.sent == {}
        SmsMessage.objects.update(ends_at=timezone.now())
        sending.end_late()
        assert emptied() == [True] and rows()[0].sent_at is None

    def test_that_expires_first_is_sent_first(
        self, unpaid: Checkout, acme: Merchant, carrier: Network
    ) -> None:
        """The text that expires first is sent first, so that a code does not have to wait for a reminder."""
        for checkout, phone in ((unpaid, PHONE), (factories.checkout(acme), "07700 900456")):
            Payer(checkout).post("/phone", phone=phone)
        SmsMessage.objects.filter(checkout_uuid=unpaid.pk).update(ends_at=timezone.now() + timedelta(days=1))
        taken = [sending.claim(), sending.claim()]
        assert [message and message.checkout_uuid == unpaid.pk for message in taken] == [False, True]
        assert sending.claim() is None

    @pytest.mark.rule("sms.once")
    def test_that_was_sent_keeps_its_result(self, unpaid: Checkout, carrier: Network) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        send_all()
        (sent,) = rows()
        sending.end_message(sent, is_sent=False, refusal="opted_out")
        assert (rows()[0].sent_at, rows()[0].refusal) == (sent.sent_at, "")

    @pytest.mark.rule("sms.once")
    @pytest.mark.parametrize("ended", ["expires_at", "used_at"])
    def test_is_not_sent_after_it_became_invalid(
        self, unpaid: Checkout, carrier: Network, ended: str
    ) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        SignInCode.objects.update(**{ended: timezone.now()})
        send_all()
        assert carrier.sent == {} and emptied() == [True]

    @pytest.mark.rule("sms.doubt")
    def test_that_was_not_accepted_is_sent_a_little_later(
        self, unpaid: Checkout, carrier: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sending.OUTCOMES.clear()
        unreachable, sent = map(sending.OUTCOMES.labels, ("unreachable", "sent"))
        Payer(unpaid).post("/phone", phone=PHONE)
        with monkeypatch.context() as busy:
            busy.setattr(carrier, "send", failing(NotAccepted("too_many_requests")))
            send_all()
        (waiting,) = rows()
        assert (waiting.claimed_at, waiting.ended_at, waiting.phone) == (None, None, LEA)
        assert waiting.due_at is not None and waiting.due_at > timezone.now()
        SmsMessage.objects.update(due_at=timezone.now())
        send_all()
        assert len(carrier.sent) == 1 and rows()[0].sent_at is not None
        assert unreachable._value.get() == sent._value.get() == 1

    @pytest.mark.rule("sms.doubt")
    @pytest.mark.parametrize(
        ("error", "refusal"), [(Refused("opted_out"), "opted_out"), (InDoubt("http_503"), "")]
    )
    def test_that_is_refused_or_in_doubt_has_ended(
        self,
        unpaid: Checkout,
        carrier: Network,
        monkeypatch: pytest.MonkeyPatch,
        error: Exception,
        refusal: str,
    ) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        with monkeypatch.context() as failed:
            failed.setattr(carrier, "send", failing(error))
            send_all()
        send_all()
        assert carrier.sent == {} and emptied() == [True]
        assert (rows()[0].sent_at, rows()[0].refusal) == (None, refusal)

    @pytest.mark.rule("sms.once")
    def test_is_not_sent_after_its_end(self, unpaid: Checkout, carrier: Network) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        SmsMessage.objects.update(ends_at=timezone.now())
        send_all()
        sending.end_late()
        assert carrier.sent == {} and emptied() == [True]

    @pytest.mark.rule("sms.once")
    def test_is_not_sent_if_there_is_a_newer_one(self, unpaid: Checkout, carrier: Network) -> None:
        lea = Payer(unpaid)
        lea.post("/phone", phone=PHONE)
        SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        lea.post("/resend")
        send_all()
        newest = SignInCode.objects.latest("created_at")
        assert list(carrier.sent) == [str(newest.pk)] and emptied() == [True, True]

    def test_is_not_sent_if_it_was_used(self, unpaid: Checkout, carrier: Network) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        SignInCode.objects.update(used_at=timezone.now())
        send_all()
        assert carrier.sent == {} and emptied() == [True]

    def test_of_an_order_that_has_ended_is_not_created(
        self, unpaid: Checkout, carrier: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lea = Payer(unpaid)
        stale = PaymentTarget(unpaid)
        cancellations.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        with pytest.raises(sign_in.NothingToSignInFor):
            sign_in.send_code(stale, LEA, "a browser", "192.0.2.1")
        assert lea.post("/phone", phone=PHONE).status_code == 303
        assert rows() == [] and not SignInCode.objects.exists()

    def test_of_an_order_past_its_deadline_is_not_created(self, unpaid: Checkout) -> None:
        Checkout.objects.filter(pk=unpaid.pk).update(payable_until=timezone.now())
        with pytest.raises(sign_in.NothingToSignInFor):
            sign_in.send_code(PaymentTarget(unpaid), LEA, "a browser", "192.0.2.1")


class TestAStop:
    @pytest.mark.rule("sms.once")
    @pytest.mark.parametrize("of_all", [True, False])
    def test_refuses_new_codes_and_drops_queued_codes(
        self, unpaid: Checkout, carrier: Network, acme: Merchant, of_all: bool
    ) -> None:
        lea = Payer(unpaid)
        lea.post("/phone", phone=PHONE)
        Switch.objects.create(merchant=None if of_all else acme, reason="a thief")
        operator_stops.reread_stops()
        other = Payer(unpaid)
        assert other.post("/phone", phone="07700 900456").status_code == 303
        assert "can’t take payments right now" in words(other.get())
        send_all()
        assert carrier.sent == {} and emptied() == [True] and SignInCode.objects.count() == 1

    def test_of_another_merchant_has_no_effect(
        self, unpaid: Checkout, carrier: Network, rival: Merchant
    ) -> None:
        Switch.objects.create(merchant=rival, reason="a thief")
        operator_stops.reread_stops()
        Payer(unpaid).post("/phone", phone=PHONE)
        send_all()
        assert len(carrier.sent) == 1


class TestAStrangersNumber:
    """Someone enters a stranger's number at a split order that is paid. Only the lead may get a code there."""

    @pytest.fixture
    def order(self, unpaid: Checkout) -> Checkout:
        Payer(unpaid).pay(split="own", name=["Finn"], amount=["20"], your_name="Lea")
        captured = captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        send_all()
        SmsMessage.objects.update(created_at=timezone.now() - timedelta(days=1))
        return captured

    def test_gets_no_text_and_uses_no_limit(self, order: Checkout, carrier: Network, acme: Merchant) -> None:
        for _ in range(sign_in.CODES_PER_SUBJECT):
            assert Payer(order).post("/phone", phone="07700 900456").status_code == 303
            SignInCode.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        send_all()
        assert carrier.sent == {} and all(emptied())
        assert Payer(factories.checkout(acme)).post("/phone", phone="07700 900456").status_code == 303
        send_all()
        assert [phone for phone, _ in carrier.sent.values()] == ["+447700900456"]

    @pytest.mark.rule("sign_in.payer_returns")
    def test_gets_the_same_response_as_the_leads_number(self, order: Checkout, carrier: Network) -> None:
        def answers(phone: str) -> list[tuple[int, str]]:
            seen = []
            for _turn in range(sign_in.CODES_PER_SUBJECT + 1):
                payer = Payer(order)
                for _ in range(2):
                    answer = payer.post("/phone", phone=phone)
                    notice = words(answer).partition("notice-title")[2].partition("</div>")[0]
                    seen.append((answer.status_code, notice))
                codes = SignInCode.objects.filter(phone=parse_phone(phone, order.merchant))
                codes.filter(subject=order.pk).update(created_at=timezone.now() - limits.CODE_INTERVAL)
            return seen

        seen = answers(PHONE)
        assert seen == answers("07700 900456") and any(notice for _, notice in seen)
        send_all()
        assert {phone for phone, _ in carrier.sent.values()} == {LEA}

    @pytest.mark.rule("sign_in.payer_returns")
    def test_locks_no_other_number(self, order: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
        locked: list[str] = []
        monkeypatch.setattr(quota, "lock", lambda *keys: locked.extend(keys))
        Payer(order).post("/phone", phone=PHONE)
        assert (
            locked.count(f"sms:{outbox.number_digest(LEA)}") == 1
            and len(locked) == 2
            and "sms:" not in locked
        )

    def test_costs_as_many_statements_as_the_leads_number(self, order: Checkout, carrier: Network) -> None:
        def statements(phone: str) -> int:
            with CaptureQueriesContext(connection) as captured:
                Payer(order).post("/phone", phone=phone)
            return len(captured)

        assert statements("07700 900456") == statements(PHONE)

    def test_that_is_the_leads_has_the_same_limit(
        self, order: Checkout, carrier: Network, acme: Merchant
    ) -> None:
        for _ in range(limits.PER_NUMBER[0].maximum):
            Payer(factories.checkout(acme)).post("/phone", phone=PHONE)
            SmsMessage.objects.filter(created_at__gt=timezone.now() - limits.CODE_INTERVAL).update(
                created_at=timezone.now() - limits.CODE_INTERVAL
            )
        send_all()
        carrier.sent.clear()
        assert Payer(order).post("/phone", phone=PHONE).status_code == 303
        send_all()
        assert carrier.sent == {}

    @pytest.mark.rule("sign_in.limits", "sign_in.payer_returns")
    def test_that_is_the_leads_gets_no_second_code_within_half_a_minute(
        self, order: Checkout, carrier: Network, acme: Merchant
    ) -> None:
        for asked_for in (factories.checkout(acme), order):
            assert Payer(asked_for).post("/phone", phone=PHONE).status_code == 303
        send_all()
        assert len(carrier.sent) == 1
        SmsMessage.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        SignInCode.objects.update(created_at=timezone.now() - limits.CODE_INTERVAL)
        assert Payer(order).post("/phone", phone=PHONE).status_code == 303
        send_all()
        assert len(carrier.sent) == 2

    @pytest.mark.rule("sms.address", "sign_in.payer_returns")
    def test_of_a_country_without_texts_is_refused_like_the_leads_number(
        self, order: Checkout, carrier: Network, settings: Settings
    ) -> None:
        settings.SMS_COUNTRIES = ["FR"]
        for phone in (PHONE, "07700 900456"):
            refused = Payer(order).post("/phone", phone=phone)
            assert refused.status_code == 422 and "We don’t send texts to this country." in words(refused)
        send_all()
        assert carrier.sent == {} and not SmsMessage.objects.filter(kind=SmsMessage.Kind.RETURN).exists()


class Silent:
    """A carrier that does not respond until `may_answer` is set."""

    shows_codes = True

    def __init__(self) -> None:
        self.may_answer, self.given = threading.Event(), Counter[str]()
        self.has_connection: list[bool] = []

    def send(self, phone: str, text: str, *, key: str) -> None:
        self.given[key] += 1
        self.has_connection.append(connection.connection is not None)
        self.may_answer.wait(60)


@pytest.mark.django_db(transaction=True)
class TestASilentCarrier:
    PEOPLE = 20

    @pytest.fixture
    def silent(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
        made = Silent()
        monkeypatch.setattr(senders, "current_sender", lambda: made)
        monkeypatch.setattr(sending, "_carrier", Bulkhead(4, queue=1))
        yield made
        made.may_answer.set()
        polling.until(
            lambda: not any(thread.name == "sms" for thread in threading.enumerate()),
            within=10,
            what="the end of the senders",
        )

    def test_delays_neither_twenty_sign_ins_nor_their_worker(self, silent: Silent, acme: Merchant) -> None:
        payers = [Payer(factories.checkout(acme)) for _ in range(self.PEOPLE)]
        for number, payer in enumerate(payers):
            assert payer.post("/phone", phone=f"07700 9001{number:02}").status_code == 303
            # Workers run this task. It must return without waiting for the carrier.
            tasks.send_sms_messages()
        polling.until(lambda: len(silent.given) == 4, within=10, what="the senders at the carrier")
        assert SmsMessage.objects.filter(claimed_at=None).count() == self.PEOPLE - 4, "no more wait for it"
        for payer in payers[:10]:
            assert payer.post("/code", code=payer.code()).status_code == 303, "whoever has a code goes on"
        silent.may_answer.set()

        def all_ended() -> bool:
            tasks.send_sms_messages()
            return not SmsMessage.objects.filter(ended_at=None).exists()

        polling.until(all_ended, within=20, what="the end of every text")
        assert set(silent.given.values()) == {1} and len(silent.given) >= 10

    def test_is_waited_for_without_a_connection_to_the_database(
        self, silent: Silent, unpaid: Checkout
    ) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        tasks.send_sms_messages()
        polling.until(lambda: silent.has_connection, within=10, what="the carrier called")
        assert silent.has_connection == [False]

    def test_ends_a_worker_that_stops_in_time(
        self, silent: Silent, unpaid: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sending, "_is_stopped", threading.Event())
        sending.stop(0.01)
        Payer(unpaid).post("/phone", phone=PHONE)
        tasks.send_sms_messages()
        assert silent.given == Counter() and SmsMessage.objects.filter(claimed_at=None).count() == 1
        for _ in range(4):
            sending._carrier.leave()
