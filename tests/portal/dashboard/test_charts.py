"""The charts on the home page, and the tables with the same figures."""

from datetime import timedelta

import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.dashboard import charts, stats
from portal.dashboard.histogram import HOLD_SECONDS
from portal.models import DeliveryHour, PaymentHour, Role
from tests.portal import stage
from tests.portal.stage import saved
from webhooks import outbox
from webhooks.health import AttemptSummary
from webhooks.models import Attempt, EventType

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.VIEWER)


class TestCharts:
    @pytest.mark.parametrize("span", stats.RANGES)
    def test_show_the_same_answer_times_as_the_page_of_webhooks(
        self, client: Client, captured: Checkout, span: str
    ) -> None:
        acme = captured.merchant
        saved(acme)
        DeliveryHour.objects.create(merchant=acme, hour=clock.now(), delivered_count=1)
        none = "Your endpoint gave no answer in the last 24 hours."
        assert none in client.get(f"/portal?range={span}").content.decode()
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        stage.deliver(acme, 200)
        page = client.get(f"/portal?range={span}").content.decode()
        time = "340\N{NO-BREAK SPACE}ms"
        assert (
            f"In the last 24 hours, half of your endpoint’s answers came within {time}, 95% within {time}."
            in page
        )
        webhooks_page = client.get("/portal/webhooks").content.decode()
        assert f"<strong>{time}</strong>" in webhooks_page and f"95% within {time}" in webhooks_page
        Attempt.objects.update(started_at=clock.now() - timedelta(hours=30))
        assert none in client.get(f"/portal?range={span}").content.decode()

    def test_show_no_answer_within_under_ten_milliseconds(self, acme: Merchant) -> None:
        DeliveryHour.objects.create(merchant=acme, hour=clock.now(), delivered_count=1)
        latest = AttemptSummary(attempts=1, delivered=1, p50_ms=4, p95_ms=9, working_since=None)
        sentence = charts.attempt_chart(stats.read_stats(acme, "24h"), latest).sentence
        assert sentence.endswith("within 10\N{NO-BREAK SPACE}ms, 95% within 10\N{NO-BREAK SPACE}ms.")

    @pytest.mark.parametrize("span", stats.RANGES)
    def test_have_a_table_with_the_same_data(self, acme: Merchant, span: str) -> None:
        hour = clock.now().replace(minute=0, second=0, microsecond=0)
        PaymentHour.objects.create(
            merchant=acme,
            hour=hour,
            currency="GBP",
            captured_count=32,
            captured_amount=420_200,
            cancelled_count=2,
            lapsed_count=1,
            hold_times=HOLD_SECONDS.count_slots([stage.slot_of(HOLD_SECONDS, 1.8)] * 32),
        )
        DeliveryHour.objects.create(
            merchant=acme,
            hour=hour,
            delivered_count=70,
            failed_count=3,
        )
        picture = stats.read_stats(acme, span)
        outcomes = charts.outcome_chart(picture)
        assert outcomes.rows[-1][1:] == ("32", "2", "1") and len(outcomes.bars) == 3
        volume = charts.volume_chart(picture)
        assert volume.rows[-1][1] == volume.dots[0].words == "£4,202.00"
        holds = charts.hold_chart(picture)
        assert holds.rows[0][1].endswith("\N{NO-BREAK SPACE}s") and not holds.is_empty
        assert [row[0] for row in holds.rows[1:]] == ["95% within", "99% within"], "one style of percentages"
        attempts = charts.attempt_chart(picture, None)
        assert attempts.rows[-1][1:] == ("70", "3")
        for chart in (outcomes, volume, attempts):
            last = chart.labels[-1]
            assert last.words == ("now" if span == "24h" else "today")
            middles = {round(bar.x + bar.width / 2, 1) for bar in chart.bars}
            if span == "7d":
                assert last.anchor == "middle" and middles <= {round(last.x, 1)}, "above its name"
            else:
                assert (last.x, last.anchor) == (100.0, "end"), "it stays in the column"
        for chart in (outcomes, volume, holds, attempts):
            assert all(bar.x >= 0 and bar.x + bar.width <= 100.1 for bar in chart.bars)
            assert all(bar.height > 0 for bar in chart.bars if chart is not holds)

    def test_without_data_are_replaced_by_text(self, client: Client, captured: Checkout) -> None:
        long_ago = captured.created_at - timedelta(days=90)
        Checkout.objects.update(created_at=long_ago, captured_at=long_ago)
        page = client.get("/portal").content.decode()
        assert (
            "No captures." in page
            and "Nothing needs your attention." in page
            and '<svg class="chart' not in page
        )

    def test_never_round_up_to_a_hundred_percent(self) -> None:
        assert (charts.percent(0.99999), charts.percent(1.0), charts.percent(None)) == (
            "99.9%",
            "100%",
            "–",
        )
