"""Texts to leads that are delayed by a refund or a dispute.

They are sent after the refund has failed, or after the dispute is won.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db.models import F
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import mate_shares, refunds
from checkout.models import Checkout, LeadNotification, Refund
from hosted_page import tasks
from hosted_page.models import SmsMessage
from hosted_page.sms import lead_notifications, sending
from payments.models import Payment
from payments.providers.sandbox import fault_injection, settling
from payments.providers.sandbox.models import Call
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate
from tests.hosted_page.sms.test_lead_notifications import a_day_before_the_end, amys, texts
from tests.hosted_page.sms.test_outbox import Network
from tests.outside import decide, dispute

pytestmark = [pytest.mark.django_db, pytest.mark.rule("lead.told")]


class TestARefundThatFails:
    @pytest.fixture(autouse=True)
    def _a_minute(self, settings: Settings) -> None:
        settings.SANDBOX_REFUND_SECONDS = 60

    def begins(self, order: Checkout) -> None:
        refunds.accept(order.merchant, order.pk, ref="r", cause=CAUSE)
        mates.pump(order.pk)

    def fails(self, order: Checkout, *, delay: timedelta = timedelta(0)) -> None:
        Refund.objects.update(created_at=F("created_at") - delay)
        pending = Call.objects.filter(kind="refund", verdict="pending")
        pending.update(fails_with="refused", settles_at=timezone.now())
        mates.pump(order.pk)
        order.refresh_from_db()
        assert order.status == "captured"

    @pytest.mark.parametrize("kind", ["declined", "all_paid", "links_end"])
    def test_releases_notifications_that_became_due_during_the_refund(
        self, finn: Mate, order: Checkout, network: Network, settings: Settings, kind: str
    ) -> None:
        if kind == "declined":
            finn.post("/decline")
        elif kind == "all_paid":
            settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
            mate_shares.cancel(amys(order).pk)
            finn.pay()
            mates.pump(order.pk)
        else:
            a_day_before_the_end()
        self.begins(order)
        assert texts(network) == []
        row = LeadNotification.objects.get(kind=kind)
        assert row.ended_at is None and row.due_at > timezone.now()
        self.fails(order)
        LeadNotification.objects.filter(kind=kind).update(due_at=timezone.now())
        assert len(texts(network)) == 1

    @pytest.mark.parametrize("is_meanwhile", [False, True], ids=["later", "between two looks"])
    def test_releases_notifications_that_were_queued_before(
        self,
        finn: Mate,
        order: Checkout,
        network: Network,
        monkeypatch: pytest.MonkeyPatch,
        is_meanwhile: bool,
    ) -> None:
        monkeypatch.setattr(lead_notifications, "PER_CHECKOUT", 1)
        self.is_queued(finn)
        self.begins(order)
        if is_meanwhile:
            monkeypatch.setattr(
                lead_notifications,
                "requeue",
                partial(self.fails_before, order, lead_notifications.requeue),
            )
        self.waits(network)
        if not is_meanwhile:
            self.fails(order)
        assert len(self.texts_in_an_hour(network)) == 1, "the one that was not sent is none of the four"

    def test_like_a_dispute_that_is_won_releases_notifications_queued_before(
        self, finn: Mate, network: Network, posted: list[int]
    ) -> None:
        self.is_queued(finn)
        found = dispute(Payment.objects.get())
        self.waits(network)
        decide(found, is_won=True)
        assert len(self.texts_in_an_hour(network)) == 1

    @pytest.mark.parametrize("is_late", [False, True])
    def test_releases_notifications_that_no_carrier_accepted(
        self, finn: Mate, order: Checkout, network: Network, is_late: bool
    ) -> None:
        self.is_queued(finn)
        self.begins(order)
        SmsMessage.objects.filter(kind="lead").update(ends_at=timezone.now())
        if is_late:
            sending.end_late()
        self.waits(network)

    def fails_before(
        self, order: Checkout, take_back: Callable[[SmsMessage], None], message: SmsMessage
    ) -> None:
        self.fails(order)
        take_back(message)

    def is_queued(self, finn: Mate) -> None:
        finn.post("/decline")
        tasks.tell_leads()
        assert SmsMessage.objects.filter(kind="lead", ended_at=None).exists()

    def waits(self, network: Network) -> None:
        assert texts(network) == []
        row = LeadNotification.objects.get(kind="declined")
        assert row.ended_at is None and row.due_at > timezone.now()
        assert SmsMessage.objects.get(kind="lead").claimed_at is None

    def texts_in_an_hour(self, network: Network) -> list[str]:
        LeadNotification.objects.filter(kind="declined").update(due_at=timezone.now())
        return texts(network)

    def test_releases_the_notification_that_all_have_paid(
        self, finn: Mate, order: Checkout, network: Network
    ) -> None:
        mate_shares.cancel(amys(order).pk)
        fault_injection.set_fault(verb="capture", mode="pending", times=1)
        finn.pay()
        mates.pump(order.pk)
        self.begins(order)
        settling.advance(payments=list(Payment.objects.values_list("pk", flat=True)), seconds=3)
        mates.pump(order.pk, rounds=2)
        assert finn.status() == "paid" and texts(network) == []
        self.fails(order)
        LeadNotification.objects.filter(kind="all_paid").update(due_at=timezone.now())
        (text,) = texts(network)
        assert text.startswith("Your mates have paid £20.00")

    @pytest.mark.rule("share.pauses")
    @pytest.mark.parametrize("is_announced", [False, True])
    def test_lets_the_end_of_the_links_be_announced_a_day_before(
        self, order: Checkout, network: Network, is_announced: bool
    ) -> None:
        if is_announced:
            a_day_before_the_end()
            assert len(texts(network)) == 1
        self.begins(order)
        self.fails(order, delay=timedelta(days=3))
        row = LeadNotification.objects.get(kind="links_end")
        assert row.ended_at is None
        assert row.due_at == (amys(order).expires_at or row.due_at) - timedelta(days=1)
