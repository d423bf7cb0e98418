"""Admin columns show short ids, links, and the cause of a change as a phrase."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client, RequestFactory
from django.utils.html import format_html

from checkout.models import Checkout
from config.lib.admin import columns
from config.lib.admin.columns import column_name
from payments.models import Operation


class TestShortened:
    UUID = "01a214bb-e9cc-71c4-b1d7-b39effcede75"

    def test_cuts_long_ids_in_the_middle_and_keeps_them_in_the_title(self) -> None:
        short = columns.shorten_ids(f"client:{self.UUID}")
        assert short == f'<span title="client:{self.UUID}">client:01a2…cede75</span>'
        assert columns.shorten_ids("<b>" + self.UUID).startswith('<span title="&lt;b&gt;01a2')

    def test_leaves_the_address_of_a_link_whole(self) -> None:
        link = format_html('<a href="/admin/x/{}/">{}</a>', self.UUID, self.UUID)
        assert columns.shorten_ids(link) == f'<a href="/admin/x/{self.UUID}/">01a2…cede75</a>'

    def test_cuts_a_digest_in_the_middle(self) -> None:
        digest = "0da7" + "5" * 54 + "04b55f"
        assert columns.shorten_ids(digest) == f'<span title="{digest}">0da7…04b55f</span>'

    @pytest.mark.parametrize("cell", ["Authorized", "req_of_the_merchants_own", "–"])
    def test_leaves_short_texts_whole(self, cell: str) -> None:
        assert columns.shorten_ids(cell) == cell


@pytest.mark.parametrize(
    ("actor", "words"),
    [
        ("pump", "The service"),
        ("client:01a22b15-4c46-767f-9631-f9d0c9f5d13a", "API client …f5d13a"),
        ("user:01a22b15-4c46-767f-9631-f9d0c9f5d13a", "Person …f5d13a"),
        ("", columns.EMPTY_CELL),
    ],
)
def test_the_cause_of_a_change_is_in_words(actor: str, words: str) -> None:
    assert columns.actor_in_words(actor) == words


def test_a_time_is_marked_as_one_so_that_it_stays_on_one_line() -> None:
    at = datetime(2026, 11, 30, 9, 5, 7, tzinfo=UTC)
    cell = columns.time_column("created_at", "created")(Checkout(created_at=at))
    assert cell == '<time datetime="2026-11-30T09:05:07+00:00">30 Nov 2026 09:05:07</time>'


@pytest.mark.django_db
def test_the_first_column_of_a_list_links_only_to_its_row(operator: Client, captured: Checkout) -> None:
    page = operator.get("/admin/checkout/bill/").content.decode()
    cell = page[page.index("<tbody>") :].partition("</th>")[0]
    assert cell.count("<a ") == 1 and f"/admin/checkout/bill/{captured.pk}/change/" in cell


@pytest.mark.django_db
def test_a_list_cuts_long_ids(operator: Client, captured: Checkout) -> None:
    page = operator.get("/admin/payments/posting/").content.decode()
    rows = re.sub(r"<[^>]+>", " ", page[page.index("<tbody>") : page.index("</tbody>")])
    assert str(captured.pk) not in rows and f"…{str(captured.pk)[-6:]}" in rows


def test_a_page_shows_technical_fields_last(rf: RequestFactory) -> None:
    shown: Any = admin.site.get_model_admin(Operation)
    names = [column_name(column) for column in shown.get_fields(rf.get("/"))]
    assert names[-4:] == ["id", "reference", "request_id", "traceparent"] and names[0] == "payment"
