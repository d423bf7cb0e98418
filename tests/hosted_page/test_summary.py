"""Days and times as pages write them, with the letters of their zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation

from checkout.models import Checkout, Item
from hosted_page import summary
from tests.hosted_page.browsers import Payer, words

AT = datetime(2026, 11, 21, 19, 5, 2, tzinfo=UTC)
SUMMER = datetime(2026, 7, 1, 19, 5, 2, tzinfo=UTC)


@pytest.mark.rule("page.zone")
class TestATime:
    @pytest.mark.parametrize(
        ("zone", "at", "shown"),
        [
            ("Europe/London", AT, ("0", "19:05:02", "GMT")),
            ("Europe/London", SUMMER, ("60", "20:05:02", "BST")),
            ("America/New_York", AT, ("-300", "14:05:02", "EST")),
            ("Asia/Kathmandu", AT, ("345", "00:50:02", "UTC+5:45")),
            ("America/Sao_Paulo", AT, ("-180", "16:05:02", "UTC-3")),
            ("UTC", AT, ("0", "19:05:02", "UTC")),
        ],
    )
    def test_carries_its_zone(self, zone: str, at: datetime, shown: tuple[str, str, str]) -> None:
        ahead, time, letters = shown
        html = summary.clock_time(at, ZoneInfo(zone))
        letters = f"<span>\N{NO-BREAK SPACE}{letters}</span>"
        assert html == (
            f'<time datetime="{at:%Y-%m-%dT%H:%M:%S}.000Z" data-zone="{ahead}">{time}{letters}</time>'
        )

    @pytest.mark.parametrize(
        ("language", "zone", "said"),
        [
            ("en-gb", "Europe/London", "London time (GMT)"),
            ("fr", "Europe/London", "heure de Londres (GMT)"),
            ("en-gb", "Asia/Kathmandu", "Kathmandu time (UTC+5:45)"),
            ("en-gb", "UTC", "UTC"),
            ("en-gb", "Etc/GMT+3", "UTC-3"),
        ],
    )
    def test_says_its_zone_in_words(self, language: str, zone: str, said: str) -> None:
        with translation.override(language):
            assert summary.zone_words(AT, ZoneInfo(zone)) == said


@pytest.mark.rule("page.zone")
@pytest.mark.django_db
class TestAnOrder:
    def test_is_in_the_zone_of_its_ticket(self, unpaid: Checkout) -> None:
        Item.objects.filter(checkout=unpaid).update(custom_data={"time_zone": "America/New_York"})
        assert summary.zone_of(Checkout.objects.get()).key == "America/New_York"

    @pytest.mark.parametrize("custom", [None, {}, {"time_zone": "Mars/Olympus"}, {"time_zone": 7}])
    def test_without_one_is_in_its_merchants(self, unpaid: Checkout, custom: object) -> None:
        unpaid.merchant.time_zone = "Europe/Paris"
        unpaid.merchant.save()
        Item.objects.filter(checkout=unpaid).update(custom_data=custom)
        assert summary.zone_of(Checkout.objects.get()).key == "Europe/Paris"
        lea = Payer(unpaid)
        lea.pay()
        page = words(lea.get())
        assert 'data-zone="60"' in page or 'data-zone="120"' in page
        assert "\N{NO-BREAK SPACE}CE" in page, "the hold's end"
