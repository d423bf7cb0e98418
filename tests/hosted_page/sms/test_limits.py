from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config.lib import clock
from config.lib.quota import Limit
from hosted_page import tasks
from hosted_page.models import SignInCode, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import limits, outbox
from hosted_page.sms.outbox import MessageRequest
from hosted_page.steps import codes

pytestmark = pytest.mark.django_db
FINN, FINN_SENT = "07700 900456", "+447700900456"


class TestLimits:
    @pytest.fixture(autouse=True)
    def _of_a_checkout(self, unpaid: Checkout) -> None:
        self.target = PaymentTarget(unpaid)

    def count(self, phone: str = FINN_SENT, address: str = "192.0.2.1") -> None:
        ends_at = timezone.now() + codes.CODE_LIFE
        outbox.queue_message(
            MessageRequest(SmsMessage.Kind.CODE, phone, self.target, "words", ends_at, address)
        )

    @pytest.mark.rule("sms.address")
    def test_of_an_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "PER_ADDRESS", Limit(3, timedelta(hours=1)))
        for number in range(3):
            self.count(f"+44770090045{number}")
        with pytest.raises(limits.TooManySmsMessages, match="network"):
            self.count("+447700900459")
        self.count("+447700900459", address="192.0.2.2")
        SmsMessage.objects.update(created_at=timezone.now() - timedelta(hours=1))
        self.count("+447700900458")

    @pytest.mark.rule("sign_in.limits")
    def test_of_a_number_in_a_day(self) -> None:
        for hours in (20, 20, 20, 20, 20, 10, 10, 10, 10, 10):
            self.count()
            newest = SmsMessage.objects.order_by("-created_at")[0]
            SmsMessage.objects.filter(pk=newest.pk).update(created_at=timezone.now() - timedelta(hours=hours))
        with pytest.raises(limits.TooManySmsMessages, match="Try again in 4 hours"):
            self.count()

    @pytest.mark.rule("sign_in.limits")
    def test_of_two_sign_in_codes_at_the_same_time(self) -> None:
        self.count()
        SmsMessage.objects.update(kind=SmsMessage.Kind.RETURN)
        with pytest.raises(limits.TooManySmsMessages, match="requested just now"):
            self.count()
        SmsMessage.objects.update(kind=SmsMessage.Kind.INVITATION)
        self.count()

    def test_of_a_network_of_ipv6(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "PER_ADDRESS", Limit(3, timedelta(hours=1)))
        for number in range(3):
            self.count(f"+44770090045{number}", address=f"2001:db8::{number}:1")
        with pytest.raises(limits.TooManySmsMessages, match="network"):
            self.count("+447700900459", address="2001:db8::ffff:9")
        self.count("+447700900459", address="2001:db8:0:1::9")

    @pytest.mark.rule("sms.budgets")
    def test_of_a_range_of_numbers(self, settings: Settings) -> None:
        settings.SMS_RANGE_BUDGET = 3
        for number in range(3):
            self.count(f"+44770090{number:04}")
        with pytest.raises(limits.TooManySmsMessages, match="Use another number"):
            self.count("+447700909999")
        self.count("+447700910000")

    def test_say_when_to_try_again(self, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
        monkeypatch.setattr(limits, "PER_ADDRESS", Limit(1, timedelta(hours=1)))
        self.count("+447700900451")
        SmsMessage.objects.update(created_at=timezone.now() - timedelta(minutes=39, seconds=30))
        with pytest.raises(limits.TooManySmsMessages, match="Try again in 21 minutes"):
            self.count("+447700900452")
        settings.SMS_RANGE_BUDGET = 1
        with pytest.raises(limits.TooManySmsMessages, match="try again in 24 hours"):
            self.count("+447700900453", address="192.0.2.9")

    @pytest.mark.rule("sms.address")
    def test_of_countries(self, settings: Settings) -> None:
        settings.SMS_COUNTRIES = ["FR", "GB"]
        self.count()
        self.count("+33612345678")
        with pytest.raises(limits.TooManySmsMessages, match="texts to this country"):
            self.count("+12025550143")

    def test_keep_no_number_longer_than_a_pay_link_is_valid(self, settings: Settings) -> None:
        self.count("+447700900457")
        old = SmsMessage.objects.get()
        self.count()
        kept_for = settings.PAY_LINK_LIFETIME + timedelta(days=1, minutes=1)
        SmsMessage.objects.filter(pk=old.pk).update(id=clock.first_id(timezone.now() - kept_for))
        tasks.delete_old_sms_messages()
        assert [text.phone for text in SmsMessage.objects.all()] == [FINN_SENT]

    def test_keep_no_code_longer_than_a_pay_link_is_valid(self, unpaid: Checkout, settings: Settings) -> None:
        codes.send_code(PaymentTarget(unpaid), "+447700900456", "a browser", "192.0.2.1")
        tasks.delete_old_sms_messages()
        assert SignInCode.objects.count() == SmsMessage.objects.count() == 1
        # With this negative lifetime, every row is old enough to be deleted.
        settings.PAY_LINK_LIFETIME = -timedelta(days=2)
        tasks.delete_old_sms_messages()
        assert SignInCode.objects.count() == SmsMessage.objects.count() == 0
