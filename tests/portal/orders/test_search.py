from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import ApiCall, Checkout
from payments.models import Merchant
from portal.models import Role
from portal.orders import search
from tests import factories
from tests.conftest import Api
from tests.portal import stage

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.SUPPORT)


def order_ids_found_by(merchant: Merchant, **typed: str) -> set[str]:
    form = search.Filters(typed)
    assert form.is_valid(), form.errors
    rows = search.find_checkouts(merchant, form.cleaned_data)
    return {checkout.merchant_order_id for checkout in rows}


class TestSearch:
    @pytest.mark.rule("portal.search")
    def test_accepts_an_order_id_a_uuid_last_digits_or_a_request_id(self, api: Api, acme: Merchant) -> None:
        uuid = api.post("checkouts", factories.order(merchant_order_id="A-1")).json()["data"]["checkout_uuid"]
        stage.hold(Checkout.objects.get(pk=uuid))
        factories.checkout(acme, merchant_order_id="A-2")
        request_id = ApiCall.objects.get(checkout_uuid=uuid).request_id
        for text in ("A-1", "a-1", uuid, uuid.upper(), "4242", request_id, " A-1 "):
            assert order_ids_found_by(acme, q=text) == {"A-1"}, text
        for text in ("A", "a-"):
            assert order_ids_found_by(acme, q=text) == {"A-1", "A-2"}, "the beginning is enough"
        lead = Checkout.objects.select_related("lead").get(pk=uuid).lead
        assert lead and lead.phone
        for text in (
            lead.phone,
            lead.phone[-10:],
            "-1",
            "nobody",
            "%",
            "A_",
            "4444",
            "01a1ff87-30a0-763f-ad37-2dcca246cbf9",
        ):
            assert order_ids_found_by(acme, q=text) == set(), text

    def test_never_finds_another_merchants_orders(self, acme: Merchant, rival: Merchant) -> None:
        theirs = stage.captured(rival, merchant_order_id="R-1")
        for text in ("R-1", "r-", str(theirs.pk), "4242"):
            assert order_ids_found_by(acme, q=text) == set()

    def test_by_state(self, acme: Merchant, at: Any) -> None:
        lapsed = at("lapsed")
        assert order_ids_found_by(acme, state="lapsed") == {lapsed.merchant_order_id}
        assert (
            order_ids_found_by(acme, state="cancelled") == order_ids_found_by(acme, state="captured") == set()
        )

    def test_by_day_in_the_merchants_own_time(self, acme: Merchant, unpaid: Checkout) -> None:
        acme.time_zone = "Asia/Tokyo"
        late = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)  # in Tokyo, it is already the 16th
        Checkout.objects.filter(pk=unpaid.pk).update(created_at=late)
        assert order_ids_found_by(acme, since="2026-11-16", until="2026-11-16") == {unpaid.merchant_order_id}
        assert (
            order_ids_found_by(acme, until="2026-11-15")
            == order_ids_found_by(acme, since="2026-11-17")
            == set()
        )

    @pytest.mark.parametrize(
        ("typed", "orders"),
        [
            ("20", {"P", "Y", "K"}),
            ("90", {"P", "Y"}),
            ("£90.01", {"Y"}),
            ("9000", {"Y"}),
            ("90,00", {"P", "Y"}),
            ("1,000", {"Y"}),
            ("9,000.00", {"Y"}),
        ],
    )
    def test_by_amount_in_each_currencys_own_units(
        self, acme: Merchant, typed: str, orders: set[str]
    ) -> None:
        for name, currency in (("P", "GBP"), ("Y", "JPY"), ("K", "KWD")):
            items = [factories.item(currency=currency, quantity=1, unit_price=9000)]
            order = {"currency": currency, "items": items, "total_amount": 9000}
            checkout = factories.checkout(acme, merchant_order_id=name, **order)
            if name == "K":
                Checkout.objects.filter(pk=checkout.pk).update(amount=20_000)  # 20.000
        assert order_ids_found_by(acme, at_least=typed) == orders

    @pytest.mark.parametrize(
        "typed",
        [
            {"since": "yesterday"},
            {"at_least": "much"},
            {"state": "lost"},
            {"since": "2026-11-02", "until": "2026-11-01"},
            {"since": "0001-01-01"},
            {"until": "9999-12-31"},
        ],
    )
    def test_that_cannot_be_read_says_so_and_shows_all(
        self, client: Client, unpaid: Checkout, typed: dict[str, str]
    ) -> None:
        page = client.get("/portal/checkouts", typed)
        assert page.status_code == 200 and unpaid.merchant_order_id in page.content.decode()

    @pytest.mark.parametrize("text", ["\x00", "'", "\\", "<script>", "x" * 5000, "٤٢٤٢", "\ud83d\ude00"])
    def test_accepts_any_text(self, client: Client, text: str) -> None:
        answer = client.get("/portal/checkouts", {"q": text.encode("utf-8", "surrogatepass")})
        assert answer.status_code == 200 and b"<script>" not in answer.content.split(b"<main")[1]


MANY = """
INSERT INTO checkout_checkout (id, merchant_id, merchant_order_id, status, amount, currency, return_url, cancel_url,
    created_at, updated_at, payable_until, void_reason, cancel_note, refunded_amount)
SELECT uuidv7(- n * interval '1 minute'), merchant_id, 'Order-' || n, 'created', amount, currency, return_url,
    cancel_url, now() - n * interval '1 minute', now(), now() + interval '1 day', '', '', 0
FROM checkout_checkout, generate_series(1, 20000) n WHERE id = %s
"""


class TestPlans:
    """The query plans for finding orders by their id in a table with many orders."""

    @pytest.fixture
    def many(self, unpaid: Checkout) -> Merchant:
        with connection.cursor() as cursor:
            cursor.execute(MANY, [unpaid.pk])
            cursor.execute("ANALYZE checkout_checkout")
        return unpaid.merchant

    def plan_of(self, rows: QuerySet[Checkout]) -> str:
        return str(rows.order_by("-created_at").values("pk")[: search.MAX_MATCHES].explain())

    def test_an_id_and_its_beginning_are_looked_up_in_the_one_index(self, many: Merchant) -> None:
        rows = Checkout.objects.filter(merchant=many)
        for text in ("order-12345", "ORDER-1999", "nobody"):
            plan = self.plan_of(rows.filter(merchant_order_id__istartswith=text))
            assert "checkout_order_ids" in plan and "Seq Scan" not in plan, plan
            assert "~>=~" in plan, "the beginning bounds what is read of the index"

    def test_a_common_prefix_is_read_newest_first_without_sorting(self, many: Merchant) -> None:
        plan = self.plan_of(Checkout.objects.filter(merchant=many, merchant_order_id__istartswith="order"))
        assert "checkout_listed" in plan and "Sort" not in plan, plan

    def test_an_exact_id_of_the_api_filter_uses_the_same_index(self, many: Merchant, api: Api) -> None:
        with CaptureQueriesContext(connection) as asked:
            page = api.get("checkouts?merchant_order_id=Order-77").json()["data"]["checkouts"]
            other = api.get("checkouts?merchant_order_id=order-77").json()["data"]["checkouts"]
        assert len(page) == 1 and other == [], "the API's filter knows one case"
        with connection.cursor() as cursor:
            cursor.execute(
                "EXPLAIN "
                + next(q["sql"] for q in asked if "merchant_order_id" in q["sql"] and "UPPER" in q["sql"])
            )
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "checkout_order_ids" in plan, plan
