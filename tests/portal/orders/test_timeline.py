import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout.models import ApiCall, Checkout
from payments.models import Merchant
from portal.models import Role
from portal.orders import lost_holds, order, timeline
from tests import factories
from tests.portal import stage
from tests.portal.orders.conftest import lapse

pytestmark = pytest.mark.django_db
REFUSED = """
INSERT INTO checkout_apicall (id, merchant_id, client_uuid, checkout_uuid, method, path, request_id,
    status, error_code, created_at)
SELECT uuidv7(moment - clock_timestamp()), %(merchant)s, gen_random_uuid(), %(checkout)s, 'POST', %(path)s, 'req_' || n,
    409, 'not_capturable', moment
FROM generate_series(1, %(count)s) n, LATERAL (SELECT %(first)s::timestamptz + n * interval '1 millisecond') at (moment)
"""


def refuse(checkout: Checkout, count: int, *, path: str = "capture") -> None:
    """Insert this many refused captures, one per millisecond after the checkout was created."""
    address = f"/api/merchant/v1/checkouts/{checkout.pk}/{path}"
    facts: dict[str, Any] = {"checkout": checkout.pk, "merchant": checkout.merchant_id, "path": address}
    with connection.cursor() as cursor:
        cursor.execute(REFUSED, facts | {"first": checkout.created_at, "count": count})


class TestALongTimeline:
    MANY = 30_000

    def test_a_page_has_the_newest_500_in_as_many_statements_as_ever(
        self, acme: Merchant, captured: Checkout
    ) -> None:
        client = stage.browser(stage.person(acme, Role.OWNER))
        address = f"/portal/checkouts/{captured.pk}"
        refuse(captured, 10)
        client.get(address)
        with CaptureQueriesContext(connection) as few:
            client.get(address)
        refuse(captured, self.MANY)
        with CaptureQueriesContext(connection) as many:
            page = client.get(address)
        assert len(many) == len(few) <= 22
        assert page.content.count(b'class="event ') == 500 and len(page.content) < 500_000
        told = client.get(f"{address}/timeline.json")
        assert len(json.loads(told.content)["timeline"]) == 500 and len(told.content) < 500_000

    def test_explains_a_lapsed_hold_with_the_same_number_of_statements(self, held: Checkout) -> None:
        def statements() -> int:
            with CaptureQueriesContext(connection) as queries:
                lost_holds.reason_of_lapse(held)
            return len(queries)

        lapse(held)
        held.refresh_from_db()
        assert held.voided_at is not None
        refuse(held, 1)
        few = statements()
        refuse(held, 2999)
        rows = ApiCall.objects.filter(checkout_uuid=held.pk)
        rows.update(created_at=held.voided_at - timedelta(seconds=1))
        assert statements() == few
        assert "3000 times with 409 not_capturable" in lost_holds.reason_of_lapse(held)

    def test_has_each_entry_on_exactly_one_page(self, acme: Merchant, captured: Checkout) -> None:
        refuse(captured, 1200)
        read = order.read_order(acme, captured.pk)
        seen, cursor = list[str](), ""
        pages = 0
        while pages == 0 or cursor:
            story = timeline.timeline_page(read, cursor)
            assert len(story.entries) <= 500 and story.is_newest == (pages == 0)
            seen += [f"{entry.at} {entry.title} {entry.request_id}" for entry in story.entries]
            cursor, pages = story.older, pages + 1
        assert pages == 3 and len(seen) == len(set(seen))
        assert len([one for one in seen if "not_capturable" in one]) == 1200
        assert any("Captured" in one for one in seen) and "Checkout created" in seen[-1] + seen[-2]

    def test_keeps_entries_of_one_moment_on_one_page(self, acme: Merchant, captured: Checkout) -> None:
        refuse(captured, 600)
        newest = ApiCall.objects.filter(checkout_uuid=captured.pk).order_by("-created_at")
        at = newest[450].created_at
        ApiCall.objects.filter(pk__in=[call.pk for call in newest[450:560]]).update(created_at=at)
        read = order.read_order(acme, captured.pk)
        first = timeline.timeline_page(read)
        rest = timeline.timeline_page(read, first.older)
        calls = [entry for entry in [*first.entries, *rest.entries] if entry.kind == "call"]
        assert len(calls) == 600 == len({entry.request_id for entry in calls})

    def test_has_links_to_older_pages_that_do_not_update(self, acme: Merchant, held: Checkout) -> None:
        client = stage.browser(stage.person(acme, Role.OWNER))
        refuse(held, 600)
        address = f"/portal/checkouts/{held.pk}"
        newest = client.get(address).content.decode()
        assert 'hx-trigger="every 2s"' in newest and ">Older</a>" in newest and ">Newest</a>" not in newest
        (older,) = re.findall(r'href="([^"]+\?before=[^"]+)">Older', newest)
        page = client.get(older).content.decode()
        assert 'hx-trigger="every 2s"' not in page and ">Newest</a>" in page and ">Older</a>" not in page

    @pytest.mark.parametrize("cursor", ["", "x", "\x00", "é", "a" * 5000, "W10:1abcde:x"])
    def test_shows_the_newest_page_for_an_invalid_cursor(
        self, acme: Merchant, held: Checkout, cursor: str
    ) -> None:
        client = stage.browser(stage.person(acme, Role.OWNER))
        page = client.get(f"/portal/checkouts/{held.pk}", {"before": cursor})
        assert page.status_code == 200 and "Held" in page.content.decode()

    def test_a_cursor_is_of_one_checkout(self, acme: Merchant, held: Checkout, rival: Merchant) -> None:
        refuse(held, 600)
        other = order.read_order(rival, factories.checkout(rival).pk)
        assert timeline.timeline_page(
            other, timeline.timeline_page(order.read_order(acme, held.pk)).older
        ).is_newest
