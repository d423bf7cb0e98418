"""The figures on the home page are counted by day, in the merchant's time zone."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from config.lib import clock
from payments.models import Merchant
from portal.dashboard import stats
from portal.models import PaymentHour, Role
from tests.portal import stage

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.VIEWER)


class TestStats:
    def test_use_days_of_the_merchants_time_zone(self, acme: Merchant) -> None:
        acme.time_zone = "America/New_York"
        # 03:00 UTC is still the previous day in New York: 22:00 or 23:00.
        midnight = datetime.now(UTC).replace(hour=3, minute=0, second=0, microsecond=0)
        PaymentHour.objects.create(
            merchant=acme, hour=midnight, currency="GBP", captured_count=3, captured_amount=300
        )
        picture = stats.read_stats(acme, "7d")
        day = next((slot.begin.date() for slot in picture.slots if slot.captured), None)
        assert day is None or day == (midnight - timedelta(hours=4)).date()
        assert all(slot.begin.hour == 0 for slot in picture.slots)

    def test_compare_with_the_previous_period(self, acme: Merchant) -> None:
        now = clock.now().replace(minute=0, second=0, microsecond=0)
        for days, count in ((1, 5), (8, 3)):
            PaymentHour.objects.create(
                merchant=acme, hour=now - timedelta(days=days), currency="GBP", captured_count=count
            )
        picture = stats.read_stats(acme, "7d")
        assert (picture.now.captured_count, picture.before.captured_count) == (5, 3)

    def test_use_the_currency_with_most_payments_by_default(self, acme: Merchant) -> None:
        hour = clock.now().replace(minute=0, second=0, microsecond=0)
        for currency, count in (("EUR", 2), ("GBP", 9)):
            PaymentHour.objects.create(merchant=acme, hour=hour, currency=currency, captured_count=count)
        assert stats.read_stats(acme, "7d").currency == "GBP"
        assert stats.read_stats(acme, "7d", "EUR").now.captured_count == 2
        assert stats.read_stats(acme, "7d", "XXX").currency == "GBP"

    def test_cost_the_same_for_any_period(self, acme: Merchant, client: Client) -> None:
        def cost(span: str) -> int:
            with CaptureQueriesContext(connection) as queries:
                assert client.get(f"/portal?range={span}").status_code == 200
            return len(queries)

        cost("7d")
        assert cost("24h") == cost("7d") == cost("30d") <= 21
