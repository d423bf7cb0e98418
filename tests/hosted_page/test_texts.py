from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import refunds, sharing, transitions
from checkout.models import Checkout, PaymentRequest
from hosted_page import invitations, sign_in, sms, tasks, texts
from hosted_page.models import SignInCode, Text
from hosted_page.visit import Visit
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE
from tests.hosted_page.test_pages import Payer, words

pytestmark = pytest.mark.django_db
FINN = "07700 900456"


class Network:
    """The SMS network: keeps what it was given, once for each key, and may be out of order."""

    shows_codes = True

    def __init__(self) -> None:
        self.sent: dict[str, tuple[str, str]] = {}
        self.is_down = False

    def send(self, phone: str, text: str, *, key: str) -> None:
        if self.is_down:
            raise ConnectionResetError
        self.sent[key] = (phone, text)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    made = Network()
    monkeypatch.setattr(sms, "current", lambda: made)
    return made


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    """She shares £90.00 with Finn and Amy, and the shop has captured."""
    payer = Payer(unpaid)
    payer.pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea 4 u.to/x")
    transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    return payer


@pytest.fixture
def finns(lea: Payer) -> PaymentRequest:
    return PaymentRequest.objects.get(checkout=lea.checkout, position=2)


def ask(lea: Payer, share: PaymentRequest, phone: str = FINN) -> Any:
    return lea.post("/text-share", share=str(share.pk), phone=phone)


def a_day_later() -> None:
    sooner = timezone.now() - timedelta(days=1, minutes=1)
    PaymentRequest.objects.update(next_reminder_at=sooner)
    Text.objects.update(created_at=sooner)


class TestAnInvitation:
    def test_names_who_asks_for_what_and_the_link(
        self, lea: Payer, finns: PaymentRequest, network: Network, settings: Settings
    ) -> None:
        network.sent.clear()
        assert ask(lea, finns).status_code == 303
        tasks.send_texts()
        [(phone, text)] = network.sent.values()
        assert phone == "+447700900456"
        link = f"{settings.CHECKOUT_PAGE_URL}/share/{finns.token}"
        assert text == f"Lea utox asks you for £20.00, your share at {lea.checkout.merchant.name}: {link}"

    def test_is_told_to_the_lead(self, lea: Payer, finns: PaymentRequest) -> None:
        assert ">Text</summary>" in words(lea.get())
        ask(lea, finns)
        page = words(lea.get())
        assert "Texted to" in page and "•••• 0456" in page and "You can remind them from" in page

    def test_needs_a_mobile_number(self, lea: Payer, finns: PaymentRequest) -> None:
        refused = ask(lea, finns, "020 7946 0000 x")
        assert refused.status_code == 422 and "Enter a mobile number" in words(refused)
        assert 'value="020 7946 0000 x"' in words(refused)
        assert not Text.objects.filter(kind="invitation").exists()

    def test_is_not_sent_for_a_share_that_nobody_can_pay_any_more(
        self, lea: Payer, finns: PaymentRequest, network: Network
    ) -> None:
        ask(lea, finns)
        network.sent.clear()
        sharing.cancel(finns.pk)
        tasks.send_texts()
        waiting = Text.objects.get(kind="invitation")
        assert network.sent == {} and (waiting.sent_at, waiting.next_try_at) == (None, None)

    def test_is_not_sent_while_the_order_is_given_back(
        self, lea: Payer, finns: PaymentRequest, network: Network
    ) -> None:
        ask(lea, finns)
        network.sent.clear()
        refunds.accept(lea.checkout.merchant, lea.checkout.pk, ref="R-1", cause=CAUSE)
        tasks.send_texts()
        assert network.sent == {}

    @pytest.mark.parametrize("who", ["a stranger", "a mate"])
    def test_is_the_leads_alone_to_send(self, lea: Payer, finns: PaymentRequest, who: str) -> None:
        other = Payer(lea.checkout)
        if who == "a mate":
            other.client.post(f"/pay/share/{finns.token}/phone", {"phone": FINN})
        answer = ask(other, finns)
        assert answer.status_code == 403 and "You are signed out" in answer.content.decode()
        assert not Text.objects.filter(kind="invitation").exists()

    def test_of_another_order_is_not_hers(self, lea: Payer, acme: Any) -> None:
        other = factories.checkout(acme)
        sharing.split_equally(other.pk, 2)
        assert ask(lea, other.payment_requests.get()).status_code == 303
        assert not Text.objects.filter(kind="invitation").exists()

    def test_ends_at_twenty_of_an_order(self, lea: Payer, finns: PaymentRequest) -> None:
        for number in range(texts.INVITATIONS):
            PaymentRequest.objects.update(next_reminder_at=None)
            assert ask(lea, finns, f"07700 900{number:03}").status_code == 303
        PaymentRequest.objects.update(next_reminder_at=None)
        refused = ask(lea, finns, "07700 900999")
        assert refused.status_code == 422 and "Send the link yourself" in words(refused)

    def test_counts_with_the_codes_of_its_number(self, lea: Payer, finns: PaymentRequest) -> None:
        _, most = texts.PER_NUMBER[0]
        for _ in range(most):
            texts.count("reminder", "+447700900456", subject=finns.pk, checkout_uuid=finns.pk, address="")
        refused = ask(lea, finns)
        assert refused.status_code == 422 and "too many texts" in words(refused)


class TestAMerchantsName:
    NAME = "Your bank 0800 123: log in at evil.co/x or lose your money"

    def test_writes_no_text(self, lea: Payer, finns: PaymentRequest, network: Network) -> None:
        Merchant.objects.update(name=self.NAME)
        ask(lea, finns)
        Payer(factories.checkout(lea.checkout.merchant)).post("/phone", phone="07700 900999")
        tasks.send_texts()
        told = [text for _, text in network.sent.values()]
        assert len(told) == 2
        assert all("Your bank log in at evilcox or" in text for text in told)
        assert not any("evil.co" in text or "0800" in text or "lose" in text for text in told)


class TestAReminder:
    def test_goes_to_the_same_number_a_day_later(
        self, lea: Payer, finns: PaymentRequest, network: Network
    ) -> None:
        ask(lea, finns)
        ask(lea, finns, "")
        assert [text.kind for text in Text.objects.filter(subject=finns.pk)] == ["invitation"]
        a_day_later()
        assert "Remind</button>" in words(lea.get())
        ask(lea, finns, "")
        assert sorted(text.kind for text in Text.objects.filter(subject=finns.pk)) == [
            "invitation",
            "reminder",
        ]
        tasks.send_texts()
        assert [phone for phone, _ in network.sent.values()].count("+447700900456") == 2


class TestSending:
    def test_is_tried_again_under_the_same_key(
        self, lea: Payer, finns: PaymentRequest, network: Network
    ) -> None:
        ask(lea, finns)
        network.is_down = True
        tasks.send_texts()
        waiting = Text.objects.get(kind="invitation")
        assert waiting.tries == 1 and waiting.sent_at is None and waiting.next_try_at is not None
        network.is_down = False
        tasks.send_texts()
        assert str(waiting.pk) not in network.sent, "not yet"
        Text.objects.filter(pk=waiting.pk).update(next_try_at=timezone.now())
        tasks.send_texts()
        assert str(waiting.pk) in network.sent
        waiting.refresh_from_db()
        assert waiting.sent_at is not None and waiting.next_try_at is None

    def test_is_given_up_after_four_tries(self, lea: Payer, finns: PaymentRequest, network: Network) -> None:
        ask(lea, finns)
        network.is_down = True
        for _ in range(6):
            Text.objects.filter(next_try_at__isnull=False).update(next_try_at=timezone.now())
            tasks.send_texts()
        waiting = Text.objects.get(kind="invitation")
        assert (waiting.tries, waiting.next_try_at, waiting.sent_at) == (4, None, None)

    def test_of_a_code_that_fails_says_so(self, unpaid: Checkout, network: Network) -> None:
        network.is_down = True
        refused = Payer(unpaid).post("/phone", phone=FINN)
        assert refused.status_code == 422 and "The text could not be sent" in words(refused)


class TestLimits:
    def count(self, phone: str = "+447700900456", address: str = "192.0.2.1") -> Text:
        uuid = SignInCode().pk
        return texts.count("code", phone, subject=uuid, checkout_uuid=uuid, address=address)

    def test_of_an_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(texts, "PER_ADDRESS", (timedelta(hours=1), 3))
        for number in range(3):
            self.count(f"+44770090045{number}")
        with pytest.raises(texts.TooManyTexts, match="network"):
            self.count("+447700900459")
        self.count("+447700900459", address="192.0.2.2")
        Text.objects.update(created_at=timezone.now() - timedelta(hours=1))
        self.count("+447700900458")

    def test_of_a_network_of_ipv6(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(texts, "PER_ADDRESS", (timedelta(hours=1), 3))
        for number in range(3):
            self.count(f"+44770090045{number}", address=f"2001:db8::{number}:1")
        with pytest.raises(texts.TooManyTexts, match="network"):
            self.count("+447700900459", address="2001:db8::ffff:9")
        self.count("+447700900459", address="2001:db8:0:1::9")

    def test_of_a_range_of_numbers(self, settings: Settings) -> None:
        settings.SMS_RANGE_BUDGET = 3
        for number in range(3):
            self.count(f"+44770090{number:04}")
        with pytest.raises(texts.TooManyTexts, match="Use another number"):
            self.count("+447700909999")
        self.count("+447700910000")

    def test_leave_no_number_longer_than_a_pay_link_lives(self, settings: Settings) -> None:
        self.count()
        old = self.count("+447700900457")
        kept_for = settings.PAY_LINK_LIFETIME + timedelta(days=1, minutes=1)
        Text.objects.filter(pk=old.pk).update(created_at=timezone.now() - kept_for)
        tasks.forget_texts()
        assert [text.phone for text in Text.objects.all()] == ["+447700900456"]

    def test_leave_no_code_longer_either(self, unpaid: Checkout, settings: Settings) -> None:
        sign_in.send_code(Visit(unpaid), "+447700900456", "a browser", "192.0.2.1")
        tasks.forget_texts()
        assert SignInCode.objects.count() == Text.objects.count() == 1
        settings.PAY_LINK_LIFETIME = -timedelta(days=2)  # all has been sent long ago then
        tasks.forget_texts()
        assert SignInCode.objects.count() == Text.objects.count() == 0


def test_a_name_without_letters_is_nobodys(lea: Payer, finns: PaymentRequest) -> None:
    lead = finns.checkout.lead
    assert lead is not None
    lead.name = "+44 7700 900123"
    assert invitations.words(finns).startswith("Your mate asks")


def test_a_code_is_sent_after_it_can_be_entered(
    unpaid: Checkout, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(network, "send", lambda *_, **__: seen.append(SignInCode.objects.count()))
    sign_in.send_code(Visit(unpaid), "+447700900456", "a browser", "192.0.2.1")
    assert seen == [1]
