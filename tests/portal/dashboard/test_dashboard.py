import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout import transitions
from checkout.models import Change, Checkout
from config.lib import clock
from payments.models import Merchant
from portal.dashboard import charts, counting, histogram, stats
from portal.dashboard.histogram import ANSWER_MS, HOLD_SECONDS
from portal.dashboard.needs import Waiting
from portal.models import DeliveryHour, PaymentHour, Role
from tests import factories
from tests.factories import CAUSE
from tests.portal import stage
from webhooks import subscriptions

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.VIEWER))


class TestHistogram:
    @pytest.mark.parametrize("share", [0.05, 0.5, 0.95, 0.99])
    def test_percentiles_are_within_seven_percent(self, share: float) -> None:
        dice = random.Random(7)
        times = sorted(min(119.0, dice.lognormvariate(0.6, 1.2)) for _ in range(5000))
        counts = HOLD_SECONDS.counted(HOLD_SECONDS.slot(value) for value in times)
        exact = times[int(share * len(times))]
        found = HOLD_SECONDS.percentile(counts, share)
        assert found is not None and abs(found - exact) / exact < 0.07

    def test_of_nothing_is_nothing(self) -> None:
        assert HOLD_SECONDS.percentile([], 0.5) is None

    def test_takes_what_lies_beyond(self) -> None:
        assert (HOLD_SECONDS.slot(0), HOLD_SECONDS.slot(10_000)) == (0, histogram.SLOTS - 1)

    def test_slots_are_the_databases_own(self) -> None:
        values = [0.0, 0.05, 0.3, 1.8, 41.0, 149.0, 1000.0]
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {HOLD_SECONDS.sql.format(value='v')} FROM unnest(%s::float8[]) v", [values]
            )
            found = [min(max(row[0], 0), histogram.SLOTS - 1) for row in cursor.fetchall()]
        assert found == [HOLD_SECONDS.slot(value) for value in values]


class TestCounting:
    def test_counts_what_became_of_each_hold(self, acme: Merchant) -> None:
        stage.captured(acme)
        stage.captured(acme)
        cancelled = stage.hold(factories.checkout(acme))
        transitions.cancel(acme, cancelled.pk, cause=CAUSE)
        transitions.cancel(acme, factories.checkout(acme).pk, cause=CAUSE)  # never held: not counted
        counting.catch_up(clock.now())
        hours = list(PaymentHour.objects.all())
        assert sum(hour.captured_count for hour in hours) == 2
        assert sum(hour.captured_amount for hour in hours) == 18_000
        assert sum(hour.cancelled_count for hour in hours) == 1
        assert sum(sum(hour.hold_times) for hour in hours) == 2

    def test_again_gives_the_same(self, acme: Merchant) -> None:
        subscriptions.register(acme, url=stage.URL, event_types=["*"])
        stage.captured(acme)
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        stage.deliver(acme, 500)
        now = clock.now()
        counting.catch_up(now)
        before = list(PaymentHour.objects.values()), list(DeliveryHour.objects.values())
        counting.catch_up(now)
        assert (list(PaymentHour.objects.values()), list(DeliveryHour.objects.values())) == before
        (sent,) = DeliveryHour.objects.all()
        assert (sent.delivered_count, sent.failed_count, sum(sent.durations)) == (0, 1, 1)
        assert sent.durations[ANSWER_MS.slot(340)] == 1

    def test_goes_on_where_it_stopped(self, acme: Merchant) -> None:
        captured = stage.captured(acme)
        counting.catch_up(clock.now())
        long_ago = clock.now() - timedelta(hours=5)
        facts = {"checkout": captured, "origin": "authorized", "to": "captured", "actor": "pump"}
        Change.objects.create(id=clock.first_id(long_ago), created_at=long_ago, **facts)
        PaymentHour.objects.all().delete()
        begin = clock.now() - timedelta(hours=6)
        PaymentHour.objects.create(
            merchant=acme, hour=begin.replace(minute=0, second=0, microsecond=0), currency="GBP"
        )
        counting.catch_up(clock.now())
        assert sum(PaymentHour.objects.values_list("captured_count", flat=True)) == 2

    def test_keeps_merchants_and_currencies_apart(self, acme: Merchant, rival: Merchant) -> None:
        stage.captured(acme)
        stage.captured(rival, currency="EUR", items=[factories.item(currency="EUR")])
        counting.catch_up(clock.now())
        rows = PaymentHour.objects.values_list("merchant", "currency", "captured_amount")
        assert set(rows) == {(acme.pk, "GBP", 9000), (rival.pk, "EUR", 9000)}


class TestStats:
    def test_days_are_the_merchants_own(self, acme: Merchant) -> None:
        acme.time_zone = "America/New_York"
        midnight = datetime.now(UTC).replace(
            hour=3, minute=0, second=0, microsecond=0
        )  # 22:00 or 23:00 there
        PaymentHour.objects.create(
            merchant=acme, hour=midnight, currency="GBP", captured_count=3, captured_amount=300
        )
        picture = stats.read(acme, "7d")
        day = next((slot.begin.date() for slot in picture.slots if slot.captured), None)
        assert day is None or day == (midnight - timedelta(hours=4)).date()
        assert all(slot.begin.hour == 0 for slot in picture.slots)

    def test_compare_with_the_time_before(self, acme: Merchant) -> None:
        now = clock.now().replace(minute=0, second=0, microsecond=0)
        for days, count in ((1, 5), (8, 3)):
            PaymentHour.objects.create(
                merchant=acme, hour=now - timedelta(days=days), currency="GBP", captured_count=count
            )
        picture = stats.read(acme, "7d")
        assert (picture.now.captured_count, picture.before.captured_count) == (5, 3)

    def test_choose_the_currency_with_most_payments(self, acme: Merchant) -> None:
        hour = clock.now().replace(minute=0, second=0, microsecond=0)
        for currency, count in (("EUR", 2), ("GBP", 9)):
            PaymentHour.objects.create(merchant=acme, hour=hour, currency=currency, captured_count=count)
        assert stats.read(acme, "7d").currency == "GBP"
        assert stats.read(acme, "7d", "EUR").now.captured_count == 2
        assert stats.read(acme, "7d", "XXX").currency == "GBP"

    def test_cost_the_same_however_long(self, acme: Merchant, client: Client) -> None:
        def cost(span: str) -> int:
            with CaptureQueriesContext(connection) as queries:
                assert client.get(f"/portal?range={span}").status_code == 200
            return len(queries)

        cost("7d")
        assert cost("24h") == cost("7d") == cost("30d") <= 20


class TestCharts:
    @pytest.mark.parametrize("span", stats.RANGES)
    def test_say_in_a_table_what_they_draw(self, acme: Merchant, span: str) -> None:
        hour = clock.now().replace(minute=0, second=0, microsecond=0)
        PaymentHour.objects.create(
            merchant=acme,
            hour=hour,
            currency="GBP",
            captured_count=32,
            captured_amount=420_200,
            cancelled_count=2,
            lapsed_count=1,
            hold_times=HOLD_SECONDS.counted([HOLD_SECONDS.slot(1.8)] * 32),
        )
        DeliveryHour.objects.create(
            merchant=acme, hour=hour, delivered_count=70, failed_count=3, durations=ANSWER_MS.counted([30])
        )
        picture = stats.read(acme, span)
        outcomes = charts.outcomes(picture)
        assert outcomes.rows[-1][1:] == ("32", "2", "1") and len(outcomes.bars) == 3
        volume = charts.volume(picture)
        assert volume.rows[-1][1] == volume.dots[0].words == "£4,202.00"
        holds = charts.holds(picture)
        assert holds.rows[0][1].endswith(" s") and not holds.is_empty
        attempts = charts.attempts(picture)
        assert attempts.rows[-1][1:] == ("70", "3")
        for chart in (outcomes, volume, holds, attempts):
            assert all(bar.x >= 0 and bar.x + bar.width <= 100.1 for bar in chart.bars)
            assert all(bar.height > 0 for bar in chart.bars if chart is not holds)

    def test_of_nothing_are_words(self, client: Client) -> None:
        page = client.get("/portal").content.decode()
        assert (
            "Nothing was captured." in page
            and "Nothing needs you." in page
            and '<svg class="chart' not in page
        )

    def test_never_say_all_where_one_failed(self) -> None:
        assert (charts.percent(0.99999), charts.percent(1.0), charts.percent(None)) == (
            "99.9 %",
            "100 %",
            "–",
        )


class TestNeeds:
    def test_are_told_worst_first(self, acme: Merchant, client: Client) -> None:
        subscriptions.register(acme, url=stage.URL, event_types=["*"])
        stage.parked(acme)
        stage.parked(acme)
        lapsed = stage.hold(factories.checkout(acme))
        Checkout.objects.filter(pk=lapsed.pk).update(
            status="voided", void_reason="auth_expired", voided_at=clock.now()
        )
        page = client.get("/portal").content.decode()
        assert page.index("2 deliveries are parked") < page.index("1 hold lapsed before a capture")
        assert "£90.00 was released" in page
        assert re.search(r'Home <span class="waiting-count">2<', page) and re.search(
            r'Deliveries <span class="waiting-count">2<', page
        )

    def test_are_the_merchants_own(self, acme: Merchant, rival: Merchant) -> None:
        subscriptions.register(rival, url=stage.URL, event_types=["*"])
        stage.parked(rival)
        assert Waiting(acme).needs() == [] and len(Waiting(rival).needs()) == 1
