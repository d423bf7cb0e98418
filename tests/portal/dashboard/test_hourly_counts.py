"""The hourly counts of holds and deliveries. Each outcome is counted once."""

from datetime import timedelta

import pytest

from checkout import cancellations
from checkout.models import Change
from config.lib import clock
from payments.models import Merchant
from portal.dashboard import hourly_counts
from portal.dashboard.histogram import ANSWER_MS
from portal.models import DeliveryHour, PaymentHour
from tests import factories
from tests.factories import CAUSE
from tests.portal import stage

pytestmark = pytest.mark.django_db


class TestCounting:
    def test_counts_the_outcome_of_each_hold(self, acme: Merchant) -> None:
        stage.captured(acme)
        stage.captured(acme)
        cancelled = stage.hold(factories.checkout(acme))
        cancellations.cancel(acme, cancelled.pk, cause=CAUSE)
        # Not counted, because this order was never held.
        cancellations.cancel(acme, factories.checkout(acme).pk, cause=CAUSE)
        hourly_counts.catch_up(clock.now())
        hours = list(PaymentHour.objects.all())
        assert sum(hour.captured_count for hour in hours) == 2
        assert sum(hour.captured_amount for hour in hours) == 18_000
        assert sum(hour.cancelled_count for hour in hours) == 1
        assert sum(sum(hour.hold_times) for hour in hours) == 2

    @pytest.mark.long
    def test_twice_gives_the_same_result(self, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        stage.captured(acme)
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        stage.deliver(acme, 500)
        now = clock.now()
        hourly_counts.catch_up(now)
        before = list(PaymentHour.objects.values()), list(DeliveryHour.objects.values())
        hourly_counts.catch_up(now)
        assert (list(PaymentHour.objects.values()), list(DeliveryHour.objects.values())) == before
        (sent,) = DeliveryHour.objects.all()
        assert (sent.delivered_count, sent.failed_count, sum(sent.durations)) == (0, 1, 1)
        assert sent.durations[stage.slot_of(ANSWER_MS, 340)] == 1

    @pytest.mark.parametrize("ahead", [None, timedelta(days=3)])
    def test_continues_where_it_stopped(self, acme: Merchant, ahead: timedelta | None) -> None:
        """Counting continues even if a fast clock has stored a row for a later hour."""
        captured = stage.captured(acme)
        hourly_counts.catch_up(clock.now())
        long_ago = clock.now() - timedelta(hours=5)
        facts = {"checkout": captured, "origin": "authorized", "to": "captured", "actor": "pump"}
        Change.objects.create(id=clock.first_id(long_ago), created_at=long_ago, **facts)
        PaymentHour.objects.all().delete()
        begin = clock.now() - timedelta(hours=6)
        PaymentHour.objects.create(
            merchant=acme, hour=begin.replace(minute=0, second=0, microsecond=0), currency="GBP"
        )
        if ahead is not None:
            DeliveryHour.objects.create(merchant=acme, hour=begin + ahead)
        hourly_counts.catch_up(clock.now())
        assert sum(PaymentHour.objects.values_list("captured_count", flat=True)) == 2

    @pytest.mark.long
    def test_keeps_merchants_and_currencies_apart(self, acme: Merchant, rival: Merchant) -> None:
        stage.captured(acme)
        stage.captured(rival, currency="EUR", items=[factories.item(currency="EUR")])
        hourly_counts.catch_up(clock.now())
        rows = PaymentHour.objects.values_list("merchant", "currency", "captured_amount")
        assert set(rows) == {(acme.pk, "GBP", 9000), (rival.pk, "EUR", 9000)}
