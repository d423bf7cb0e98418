from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares, refunds
from checkout.group import share_changes, share_claims
from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import invitations, limits, outbox, sending, stopped_numbers
from hosted_page.sms.outbox import MessageRequest
from hosted_page.sms.senders import InDoubt, Refused
from hosted_page.steps import codes
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer, words

pytestmark = pytest.mark.django_db
FINN, FINN_SENT = "07700 900456", "+447700900456"


class Network:
    """A test double of the SMS network. It stores the last message for each key, and a test can make it fail."""

    shows_codes = True

    def __init__(self) -> None:
        self.sent: dict[str, tuple[str, str]] = {}
        self.is_down = False
        self.error: Exception | None = None

    def send(self, phone: str, text: str, *, key: str) -> None:
        if self.is_down:
            raise ConnectionResetError
        if self.error is not None:
            raise self.error
        self.sent[key] = (phone, text)


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who splits £90.00 with Finn and Amy. The merchant has captured the order."""
    payer = Payer(unpaid)
    payer.pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea 4 u.to/x")
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    return payer


@pytest.fixture
def finns(lea: Payer) -> PaymentRequest:
    return PaymentRequest.objects.get(checkout=lea.checkout, position=2)


def ask(lea: Payer, share: PaymentRequest, phone: str = FINN) -> Any:
    return lea.post("/text-share", share=str(share.pk), phone=phone)


def put(
    phone: str,
    target: PaymentTarget,
    *,
    kind: SmsMessage.Kind = SmsMessage.Kind.CODE,
    address: str = "192.0.2.1",
) -> None:
    outbox.queue_message(
        MessageRequest(kind, phone, target, "words", timezone.now() + codes.CODE_LIFE, address)
    )


def send_all() -> None:
    """Send the waiting texts, as the threads of a worker do."""
    while (text := sending.claim()) is not None:
        sending.send(text)


def is_free(share: PaymentRequest) -> bool:
    return share_claims.is_free(PaymentRequest.objects.get(pk=share.pk), timezone.now())


def a_day_later() -> None:
    sooner = timezone.now() - timedelta(days=1, minutes=1)
    PaymentRequest.objects.update(next_reminder_at=sooner)
    SmsMessage.objects.update(created_at=sooner)


class TestAnInvitation:
    @pytest.mark.rule("sms.invitation")
    def test_names_the_lead_the_amount_and_the_link(
        self, lea: Payer, finns: PaymentRequest, carrier: Network, settings: Settings
    ) -> None:
        carrier.sent.clear()
        assert ask(lea, finns).status_code == 303
        send_all()
        [(phone, text)] = carrier.sent.values()
        assert phone == "+447700900456"
        link = f"{settings.CHECKOUT_PAGE_URL}/share/{finns.token}"
        stop = stopped_numbers.stop_link(outbox.number_digest(phone))
        assert (
            text == f"Lea utox is asking you for £20.00, your share at {lea.checkout.merchant.name}: {link}"
            f" No more texts: {stop}"
        )

    def test_is_shown_to_the_lead(self, lea: Payer, finns: PaymentRequest) -> None:
        assert "Text it to a number" in words(lea.get())
        ask(lea, finns)
        page = words(lea.get())
        assert "no text was sent to" in page and "•••• 0456" in page and "You can remind them from" in page

    def test_needs_a_mobile_number(self, lea: Payer, finns: PaymentRequest) -> None:
        refused = ask(lea, finns, "020 7946 0000 x")
        assert refused.status_code == 422 and "Enter a mobile number" in words(refused)
        assert 'value="020 7946 0000 x"' in words(refused)
        assert not SmsMessage.objects.filter(kind="invitation").exists()

    def test_is_not_sent_for_a_share_that_cannot_be_paid_any_more(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        ask(lea, finns)
        carrier.sent.clear()
        mate_shares.cancel(finns.pk)
        send_all()
        ended = SmsMessage.objects.get(kind="invitation")
        assert carrier.sent == {} and ended.sent_at is None and ended.ended_at is not None

    def test_is_not_sent_with_a_link_that_has_been_replaced(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        ask(lea, finns)
        carrier.sent.clear()
        mate_shares.cancel(finns.pk)
        share_changes.ask_again(finns.pk)
        send_all()
        assert carrier.sent == {} and SmsMessage.objects.get(kind="invitation").sent_at is None

    def test_is_not_sent_while_the_order_is_refunded(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        ask(lea, finns)
        carrier.sent.clear()
        refunds.accept(lea.checkout.merchant, lea.checkout.pk, ref="R-1", cause=CAUSE)
        send_all()
        assert carrier.sent == {}

    @pytest.mark.parametrize("who", ["a stranger", "a mate"])
    def test_can_be_sent_only_by_the_lead(self, lea: Payer, finns: PaymentRequest, who: str) -> None:
        other = Payer(lea.checkout)
        if who == "a mate":
            other.client.post(f"/pay/share/{finns.token}/phone", {"phone": FINN})
        answer = ask(other, finns)
        assert answer.status_code == 403 and "You are signed out" in answer.content.decode()
        assert not SmsMessage.objects.filter(kind="invitation").exists()

    def test_is_refused_while_the_shop_is_stopped(
        self, lea: Payer, finns: PaymentRequest, acme: Merchant
    ) -> None:
        factories.stop(acme)
        refused = ask(lea, finns)
        assert refused.status_code == 422 and "is not taking payments now" in words(refused)
        assert not SmsMessage.objects.filter(kind="invitation").exists()

    def test_of_another_order_cannot_be_sent(self, lea: Payer, acme: Any) -> None:
        other = factories.checkout(acme)
        mate_shares.split_equally(other.pk, 2)
        assert ask(lea, other.payment_requests.get()).status_code == 303
        assert not SmsMessage.objects.filter(kind="invitation").exists()

    @pytest.mark.rule("sms.invitation")
    def test_is_refused_above_the_limit_of_an_order(self, lea: Payer, finns: PaymentRequest) -> None:
        for number in range(limits.INVITATIONS):
            PaymentRequest.objects.update(next_reminder_at=None)
            assert ask(lea, finns, f"07700 900{number:03}").status_code == 303
        PaymentRequest.objects.update(next_reminder_at=None)
        refused = ask(lea, finns, "07700 900999")
        assert refused.status_code == 422 and "Send the link yourself" in words(refused)

    def test_counts_towards_the_limit_of_its_number(self, lea: Payer, finns: PaymentRequest) -> None:
        for _ in range(limits.PER_NUMBER[0].maximum):
            put("+447700900456", PaymentTarget(lea.checkout, finns), kind=SmsMessage.Kind.REMINDER)
        refused = ask(lea, finns)
        assert refused.status_code == 422 and "cannot send more texts to this number" in words(refused)
        assert "aria-invalid" not in words(refused), "the number can be right"


@pytest.mark.rule("sms.invitation")
class TestAMerchantsName:
    NAME = "Your bank 0800 123: log in at evil.co/x or lose your money"

    def test_is_made_safe_before_it_is_sent(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        Merchant.objects.update(name=self.NAME)
        ask(lea, finns)
        Payer(factories.checkout(lea.checkout.merchant)).post("/phone", phone="07700 900999")
        send_all()
        told = [text for _, text in carrier.sent.values()]
        assert len(told) == 2
        assert all("Your bank log in at evilcox or" in text for text in told)
        assert not any("evil.co" in text or "0800" in text or "lose" in text for text in told)


@pytest.mark.rule("sms.invitation")
class TestAReminder:
    def test_goes_to_the_same_number_a_day_later(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        ask(lea, finns)
        ask(lea, finns, "")
        assert [text.kind for text in SmsMessage.objects.filter(subject=finns.pk)] == ["invitation"]
        a_day_later()
        assert "text the link to" in words(lea.get())
        ask(lea, finns, "")
        assert sorted(text.kind for text in SmsMessage.objects.filter(subject=finns.pk)) == [
            "invitation",
            "reminder",
        ]
        send_all()
        assert [phone for phone, _ in carrier.sent.values()].count("+447700900456") == 2


@pytest.mark.rule("group.own_link")
class TestAnInvitationThatFails:
    def test_is_not_sent_again_but_can_be_requested_again(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        ask(lea, finns)
        carrier.error = Refused("bad_number")
        send_all()
        assert "0456" not in words(lea.get()) and "Text it to a number" in words(lea.get())
        assert is_free(finns)
        carrier.error = None
        send_all()
        assert FINN_SENT not in [phone for phone, _ in carrier.sent.values()]
        assert ask(lea, finns).status_code == 303
        send_all()
        assert [phone for phone, _ in carrier.sent.values()].count(FINN_SENT) == 1
        assert "no text was sent to" in words(lea.get())

    def test_in_doubt_keeps_its_number(self, lea: Payer, finns: PaymentRequest, carrier: Network) -> None:
        for error in (ConnectionResetError(), InDoubt("no_answer")):
            ask(lea, finns)
            carrier.error = error
            send_all()
            assert not is_free(finns)
            page = words(lea.get())
            assert "text the link to" in page and "•••• 0456" in page, "it may be asked for again"
        carrier.error = None
        assert ask(lea, finns, "").status_code == 303
        send_all()
        assert [phone for phone, _ in carrier.sent.values()].count(FINN_SENT) == 1

    def test_whose_worker_died_after_the_claim_is_in_doubt(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        for is_taken in (True, False):
            ask(lea, finns)
            if is_taken:
                assert sending.claim() is not None
            SmsMessage.objects.filter(ended_at=None).update(ends_at=timezone.now())
            sending.end_late()
            assert is_free(finns) is not is_taken
            PaymentRequest.objects.update(phone="", next_reminder_at=None)

    def test_to_another_number_keeps_the_link_with_the_earlier_number(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        ask(lea, finns)
        send_all()
        a_day_later()
        ask(lea, finns, "07700 900789")
        assert "•••• 0789" in words(lea.get()), "it is on its way there"
        carrier.error = Refused("bad_number")
        send_all()
        assert not is_free(finns) and "•••• 0456" in words(lea.get())
        carrier.error = None
        ask(lea, finns, "07700 900789")
        send_all()
        assert not is_free(finns) and "•••• 0789" in words(lea.get())

    def test_as_a_reminder_keeps_the_earlier_text(
        self, lea: Payer, finns: PaymentRequest, carrier: Network
    ) -> None:
        ask(lea, finns)
        send_all()
        a_day_later()
        ask(lea, finns, "")
        carrier.is_down = True
        send_all()
        page = words(lea.get())
        assert "text the link to" in page and "•••• 0456" in page


def test_a_name_without_letters_is_replaced_by_your_mate(lea: Payer, finns: PaymentRequest) -> None:
    lead = finns.checkout.lead
    assert lead is not None
    lead.name = "+44 7700 900123"
    assert invitations.invitation_text(finns).startswith("Your mate is asking")
