from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from checkout.models import ApiCall, Checkout
from payments.models import Merchant
from portal.models import Role
from portal.orders import search
from tests import factories
from tests.conftest import Api
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.SUPPORT))


def found(merchant: Merchant, **typed: str) -> set[str]:
    form = search.Filters(typed)
    assert form.is_valid(), form.errors
    rows = search.checkouts(merchant, form.cleaned_data)
    return {checkout.merchant_order_id for checkout in rows}


class TestSearch:
    def test_takes_an_order_id_a_uuid_last_digits_or_a_request_id(self, api: Api, acme: Merchant) -> None:
        uuid = api.post("checkouts", factories.order(merchant_order_id="A-1")).json()["data"]["checkout_uuid"]
        stage.hold(Checkout.objects.get(pk=uuid))
        factories.checkout(acme, merchant_order_id="A-2")
        request_id = ApiCall.objects.get(checkout_uuid=uuid).request_id
        for text in ("A-1", uuid, uuid.upper(), "4242", request_id, " A-1 "):
            assert found(acme, q=text) == {"A-1"}, text
        for text in ("A-", "nobody", "%", "4444", "01a1ff87-30a0-763f-ad37-2dcca246cbf9"):
            assert found(acme, q=text) == set(), text

    def test_never_finds_a_strangers(self, acme: Merchant, rival: Merchant) -> None:
        theirs = stage.captured(rival, merchant_order_id="R-1")
        for text in ("R-1", str(theirs.pk), "4242"):
            assert found(acme, q=text) == set()

    def test_by_state(self, acme: Merchant, at: Any) -> None:
        lapsed = at("lapsed")
        assert found(acme, state="lapsed") == {lapsed.merchant_order_id}
        assert found(acme, state="cancelled") == found(acme, state="captured") == set()

    def test_by_day_in_the_merchants_own_time(self, acme: Merchant, unpaid: Checkout) -> None:
        acme.time_zone = "Asia/Tokyo"
        late = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)  # the 16th in Tokyo
        Checkout.objects.filter(pk=unpaid.pk).update(created_at=late)
        assert found(acme, since="2026-11-16", until="2026-11-16") == {unpaid.merchant_order_id}
        assert found(acme, until="2026-11-15") == found(acme, since="2026-11-17") == set()

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
        assert found(acme, at_least=typed) == orders

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
    def test_takes_whatever_is_typed(self, client: Client, text: str) -> None:
        answer = client.get("/portal/checkouts", {"q": text.encode("utf-8", "surrogatepass")})
        assert answer.status_code == 200 and b"<script>" not in answer.content.split(b"<main")[1]
