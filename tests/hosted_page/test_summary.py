"""Days and times on pages, with the abbreviation of the time zone."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation

from checkout.models import Bill, Checkout
from hosted_page import summary
from tests import factories
from tests.hosted_page.browsers import Payer, words

AT = datetime(2026, 11, 21, 19, 5, 2, tzinfo=UTC)
SUMMER = datetime(2026, 7, 1, 19, 5, 2, tzinfo=UTC)


def billed(checkout: Checkout, **changes: Any) -> None:
    """Replace the lines of the order by one default line with these changes."""
    Bill.objects.filter(pk=checkout.pk).update(lines=[factories.line(**changes)])


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
    def test_has_its_zone(self, zone: str, at: datetime, shown: tuple[str, str, str]) -> None:
        ahead, time, letters = shown
        html = summary.clock_time(at, ZoneInfo(zone))
        letters = f"<span>\N{NO-BREAK SPACE}{letters}</span>"
        assert html == (
            f'<time datetime="{at:%Y-%m-%dT%H:%M:%S}.000Z" data-zone="{ahead}">{time}{letters}</time>'
        )

    @pytest.mark.parametrize(
        ("minutes", "said"), [(0, "19:05"), (294, "23:59"), (295, "Sun 22 November, 00:00")]
    )
    def test_until_which_a_page_works_has_its_day_unless_it_is_today(
        self, unpaid: Checkout, minutes: int, said: str
    ) -> None:
        html = summary.time_until(AT + timedelta(minutes=minutes), AT, unpaid)
        assert f">{said}<span>" in html

    @pytest.mark.parametrize(
        ("language", "zone", "said"),
        [
            ("en-gb", "Europe/London", "London time (GMT)"),
            ("fr", "Europe/London", "heure locale (Londres, GMT)"),
            ("de", "Europe/Vienna", "Ortszeit Wien (CET)"),
            ("es", "Europe/London", "hora de Londres (GMT)"),
            ("it", "Europe/London", "ora di Londra (GMT)"),
            ("nl", "Europe/London", "tijd in Londen (GMT)"),
            ("en-gb", "Asia/Kathmandu", "Kathmandu time (UTC+5:45)"),
            ("en-gb", "UTC", "UTC"),
            ("en-gb", "Etc/GMT+3", "UTC-3"),
        ],
    )
    def test_says_its_zone_in_words(self, language: str, zone: str, said: str) -> None:
        with translation.override(language):
            assert summary.zone_words(AT, ZoneInfo(zone)) == said


@pytest.mark.rule("page.dates")
class TestADate:
    @pytest.mark.parametrize(
        ("language", "full", "without_year"),
        [
            ("en-gb", "21 November 2026, 19:05:02", "Sat 21 November, 19:05"),
            ("de", "21. November 2026, 19:05:02", "Sa., 21. November, 19:05"),
            ("es", "21 de noviembre de 2026, 19:05:02", "sáb, 21 de noviembre, 19:05"),
            ("fr", "21 novembre 2026, 19:05:02", "sam. 21 novembre, 19:05"),
            ("it", "21 novembre 2026, 19:05:02", "sab 21 novembre, 19:05"),
            ("nl", "21 november 2026, 19:05:02", "za 21 november, 19:05"),
        ],
    )
    @pytest.mark.django_db
    def test_is_written_in_the_format_of_the_language(
        self, unpaid: Checkout, language: str, full: str, without_year: str
    ) -> None:
        with translation.override(language):
            dated = summary.full_date(AT, ZoneInfo("Europe/London"))
            day, _, time = full.rpartition(" ")
            assert dated == f'<span class="together">{day}</span> {time}', "breaks before its time alone"
            assert f">{full}<span>" in summary.full_time(AT, ZoneInfo("Europe/London"))
            assert f">{without_year}<span>" in summary.day_with_time(AT, unpaid)
            assert summary.date_of(AT, unpaid) == full.partition(" 2026")[0].removesuffix(" de")

    @pytest.mark.parametrize(
        ("language", "shown"),
        [
            ("de", "Sa., 12. Dezember 2026, 20:30, Ortszeit Paris"),
            ("es", "sáb, 12 de diciembre de 2026, 20:30, hora de París"),
            ("it", "sab 12 dicembre 2026, 20:30, ora di Parigi"),
            ("nl", "za 12 december 2026, 20:30, tijd in Parijs"),
        ],
    )
    @pytest.mark.django_db
    def test_of_a_ticket_names_the_city_in_it(self, unpaid: Checkout, language: str, shown: str) -> None:
        show = {"event_start": "2026-12-12T19:30:00Z", "time_zone": "Europe/Paris"}
        billed(unpaid, custom_data=show)
        lea = Payer(unpaid)
        lea.client.post("/pay/language", {"language": language, "next": "/pay"})
        assert shown in words(lea.get())

    @pytest.mark.parametrize("start", ["2026-12-12T19:30:00", "2026-12-12"])
    @pytest.mark.django_db
    def test_without_its_offset_is_not_guessed(self, unpaid: Checkout, start: str) -> None:
        billed(unpaid, category="experience", custom_data={"event_start": start, "time_zone": "Europe/Paris"})
        assert "12 December" not in words(Payer(unpaid).get())


@pytest.mark.parametrize(
    ("sold", "title"),
    [
        ([("Ticket", "ticket")], "Ticket"),
        ([("Fee", "fee"), ("Ticket", "ticket"), ("Early bird", "discount")], "Ticket"),
        ([("Ticket", "ticket"), ("Poster", "merchandise"), ("Post", "shipping")], "Ticket and 1 more"),
        ([("Ticket", "ticket"), ("{0}", "other"), ("Cup", "unheard_of")], "Ticket and 2 more"),
        ([("Post", "shipping"), ("Tax", "tax")], "Post"),
    ],
)
def test_an_order_is_named_after_its_items(sold: list[tuple[str, str]], title: str) -> None:
    checkout = Checkout()
    checkout.bill = [factories.line(name=name, category=category) for name, category in sold]
    assert summary.title(checkout) == title


@pytest.mark.rule("page.zone")
@pytest.mark.django_db
class TestAnOrder:
    def test_uses_the_time_zone_of_its_ticket(self, unpaid: Checkout) -> None:
        billed(unpaid, custom_data={"time_zone": "America/New_York"})
        assert summary.zone_of(Checkout.objects.get()).key == "America/New_York"

    @pytest.mark.parametrize("custom", [None, {}, {"time_zone": "Mars/Olympus"}, {"time_zone": 7}])
    def test_without_a_ticket_uses_the_merchants_time_zone(self, unpaid: Checkout, custom: object) -> None:
        unpaid.merchant.time_zone = "Europe/Paris"
        unpaid.merchant.save()
        billed(unpaid, custom_data=custom)
        assert summary.zone_of(Checkout.objects.get()).key == "Europe/Paris"
        lea = Payer(unpaid)
        lea.pay()
        page = words(lea.get())
        assert 'data-zone="60"' in page or 'data-zone="120"' in page
        assert "\N{NO-BREAK SPACE}CE" in page, "the hold's end"
