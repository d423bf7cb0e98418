"""Operators can search for an order by an id, a reference or a number."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from checkout import refunds
from checkout.models import ApiCall, Checkout, Customer, PaymentRequest
from config.lib import clock
from payments import bookings, operator_stops
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Merchant, Operation, Payment
from portal.backoffice import lists, search
from portal.backoffice.search import SearchResults
from portal.models import User
from tests import factories, mates, outside
from tests.conftest import Api
from tests.factories import CAUSE
from tests.webhooks.story import claim_one, register
from webhooks.models import Delivery, Event

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.search")]


def orders_found_by(term: Any) -> list[Checkout]:
    return [row.checkout for row in search_results(term).orders]


def search_results(term: Any) -> SearchResults:
    request = RequestFactory().get("/admin/find")
    request.user = User(is_superuser=True)
    return search.find_rows(str(term), request)


class TestFinding:
    @pytest.mark.parametrize(
        "term",
        [
            lambda order: order.pk,
            lambda order: str(order.pk).upper(),
            lambda order: f"  {order.merchant_order_id} ",
            lambda order: order.payment.pk,
            lambda order: order.payment.card_last4,
            lambda order: Operation.objects.get(kind="capture").pk,
            lambda order: Event.objects.get(type="checkout.authorized").pk,
            lambda order: order.lead.phone,
        ],
        ids=["uuid", "UUID", "order id", "payment", "last 4", "operation", "event", "number"],
    )
    def test_an_order_by_one_of_its_properties(
        self, captured: Checkout, rival: Merchant, term: Callable[[Checkout], Any]
    ) -> None:
        factories.checkout(rival, merchant_order_id="B-1")
        assert orders_found_by(
            term(Checkout.objects.select_related("payment", "lead").get(pk=captured.pk))
        ) == [captured]

    def test_merchants_of_one_name_with_what_distinguishes_them(
        self, operator: Client, acme: Merchant
    ) -> None:
        Merchant.objects.filter(pk=acme.pk).update(shop_url="https://shop.acme.example/")
        other = factories.MerchantFactory.create(name=acme.name)
        operator_stops.suspend(other, reason="Fraud")
        page = operator.get(f"/admin/find?q={acme.name}").content.decode()
        mine, its = (page[page.index(str(key)) :].partition("</li>")[0] for key in (acme.pk, other.pk))
        assert "Open</span>" in mine and "shop.acme.example" in mine and str(acme.pk)[-6:] in mine
        assert "Stopped</span>" in its and f"joined {other.created_at:%-d %b %Y}" in its

    def test_by_the_providers_reference(self, captured: Checkout) -> None:
        Payment.objects.update(provider_reference="pi_3Nxyz")
        assert orders_found_by("pi_3Nxyz") == [captured] and orders_found_by("pi_3Nxy") == []

    def test_by_the_request_id_of_a_call(self, api: Api, held: Checkout) -> None:
        api.post(f"checkouts/{held.pk}/capture", X_Request_Id="order-7.capture")
        assert ApiCall.objects.filter(request_id="order-7.capture").exists()
        assert orders_found_by("order-7.capture") == [held]

    def test_by_a_refunds_reference(self, captured: Checkout) -> None:
        refund = refunds.accept(captured.merchant, captured.pk, ref="R-17", cause=CAUSE).refund
        assert orders_found_by("R-17") == orders_found_by(refund.pk) == [captured]

    def test_by_a_share_and_its_mates_number(self, unpaid: Checkout) -> None:
        (share,) = mates.split(unpaid, 2000)
        PaymentRequest.objects.update(phone="+447700900555")
        assert orders_found_by(share.pk) == orders_found_by("+447700900555") == [unpaid]
        other = Customer.objects.create(phone="+447700900556")
        PaymentRequest.objects.update(mate=other)
        assert orders_found_by("+447700900556") == [unpaid]

    @pytest.mark.usefixtures("posted")
    def test_by_a_movement_and_a_booking(self, captured: Checkout) -> None:
        assert captured.payment is not None
        outside.refund_outside(captured.payment, 500)
        refund = Operation.objects.get(purpose="outside")
        booking = bookings.settle_outside(refund, 500, note="By hand", now=clock.now(), cause=CAUSE)
        moved = refund.movements.get()
        assert (
            orders_found_by(booking.pk)
            == orders_found_by(moved.pk)
            == orders_found_by(refund.pk)
            == [captured]
        )

    def test_by_an_api_call_and_a_delivery_attempt(self, api: Api, held: Checkout) -> None:
        register(held.merchant)
        api.post(f"checkouts/{held.pk}/cancel")
        assert orders_found_by(claim_one().lease_token) == [held]
        assert orders_found_by(ApiCall.objects.get(path__endswith="cancel").pk) == [held]

    @pytest.mark.usefixtures("posted")
    def test_by_a_dispute_and_its_discrepancy(self, captured: Checkout) -> None:
        dispute = outside.dispute(captured.payment)
        told = Discrepancy.objects.get(kind="disputed")
        assert orders_found_by(dispute.pk) == orders_found_by(told.pk) == [captured]

    @pytest.mark.parametrize(
        ("subject", "facts"),
        [
            (lambda order: uuid4(), lambda order: {"checkout": str(order.pk)}),
            (lambda order: order.pk, lambda order: {}),
            (lambda order: order.payment_id, lambda order: {}),
        ],
        ids=["a provider's record", "the order", "its payment"],
    )
    def test_by_a_discrepancy_of_no_operation(self, captured: Checkout, subject: Any, facts: Any) -> None:
        reporting.report(kinds.OUTSIDE_CAPTURE, subject(captured), **facts(captured))
        told = Discrepancy.objects.get()
        assert orders_found_by(told.pk) == orders_found_by(told.subject) == [captured]

    def test_by_a_uuid_always_costs_the_same(self, captured: Checkout) -> None:
        reporting.report(kinds.OUTSIDE_CAPTURE, captured.payment_id)
        told = Discrepancy.objects.get()
        with CaptureQueriesContext(connection) as asked:
            ways = list(search._find_by_uuid(told.pk))
        assert len(asked) == len(ways) == 2 * len(search.KEYS) + 1

    @pytest.mark.parametrize(
        "row", [row for row in search.KEYS if row[1] is not Delivery], ids=lambda row: f"{row[0]} {row[2]}"
    )
    def test_by_a_uuid_uses_an_index_that_begins_with_it(
        self, row: tuple[str, type[Model], str, str]
    ) -> None:
        """Each column that the search uses is the first column of an index.

        The test checks the indexes instead of query plans, because the plans for nearly empty tables prove little. It
        leaves out deliveries, because only the partitions of their table have the index.
        """
        _, model, key, _ = row
        column = (model._meta.pk if key == "pk" else model._meta.get_field(key)).column  # type: ignore[union-attr]
        with connection.cursor() as cursor:
            kept = connection.introspection.get_constraints(cursor, model._meta.db_table).values()
        assert any(index["index"] or index["unique"] for index in kept if index["columns"][:1] == [column])

    def test_by_an_order_id_that_is_a_uuid(self, acme: Merchant) -> None:
        order = factories.checkout(acme, merchant_order_id="0193c0de-1111-7000-8000-00000000beef")
        assert orders_found_by(order.merchant_order_id) == [order]

    def test_of_another_merchant_by_the_same_order_id(self, acme: Merchant, rival: Merchant) -> None:
        orders = [factories.checkout(merchant, merchant_order_id="A-1") for merchant in (acme, rival)]
        assert set(orders_found_by("A-1")) == set(orders)

    @pytest.mark.parametrize(
        "term",
        ["", "   ", "nothing", "+4477", "+44770090012", "7700900123", "%", "'", "\0", "A\0", "9" * 300],
    )
    def test_finds_nothing_by_an_incomplete_or_unknown_term(self, captured: Checkout, term: str) -> None:
        assert orders_found_by(term) == []


class TestSeveral:
    def test_say_whether_there_are_older_ones(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(search, "MAX_SHOWN", 2)
        phone = "+447700900555"
        orders = [factories.checkout(acme, merchant_order_id=f"A-{number}") for number in range(3)]
        for order in orders[:2]:
            mates.split(order, 2000)
        PaymentRequest.objects.update(phone=phone)
        assert len(search_results(phone).orders) == 2 and not search_results(phone).is_cut
        mates.split(orders[2], 2000)
        PaymentRequest.objects.update(phone=phone)
        assert orders_found_by(phone) == [orders[2], orders[1]] and search_results(phone).is_cut

    def test_list_each_card_of_an_order_once(self) -> None:
        first, *more = [
            Payment(pk=uuid4(), card_brand=brand, card_last4=last4)
            for brand, last4 in (("Mastercard", "4444"), ("Visa", "4242"), ("Mastercard", "4444"), ("", ""))
        ]
        assert lists.list_cards([first, *more]) == [
            lists.Card("Mastercard 4444\N{NO-BREAK SPACE}×2", first.pk),
            lists.Card("Visa 4242", more[0].pk),
            lists.Card("no card", more[2].pk),
        ]


class TestMatchedField:
    def test_is_named_once_if_it_is_the_same_for_all(self, captured: Checkout) -> None:
        assert search_results("4242").found_by == "card" and not search_results("4242").has_mixed_id_kinds

    def test_is_named_for_each_order_if_it_differs(self, captured: Checkout, acme: Merchant) -> None:
        factories.checkout(acme, merchant_order_id="4242")
        results = search_results("4242")
        assert (
            results.has_mixed_id_kinds
            and not results.found_by
            and {row.found_by for row in results.orders} == {"card", "order ID"}
        )
