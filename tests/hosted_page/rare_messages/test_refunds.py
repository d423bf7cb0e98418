"""Rare messages to payers about refunds, in each language."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from checkout import refunds
from checkout.models import Checkout
from checkout.remedies import settling_outside
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer
from tests.hosted_page.rare_messages.captured_orders import captured, speaking
from tests.outside import RETURNS, come_back, decide, dispute, refund_outside, returned, settle

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.rule("page.language")]


class TestTheRefund:
    def test_that_was_returned(self, refunded: Checkout, language: str, shows: Callable[..., bool]) -> None:
        come_back()
        page = speaking(Payer(refunded), language).get()
        assert shows(page, "The refund was returned")
        assert shows(
            page,
            "{shop} refunded this order, but a bank sent money back. It will be sent again or paid another way.",
        )

    @pytest.mark.parametrize("mates_", [1, 2])
    def test_after_mates_without_names_have_paid(
        self, lea: Payer, shows: Callable[..., bool], mates_: int
    ) -> None:
        order = captured(lea, name=[""] * mates_, amount=["20"] * mates_)
        for share in order.payment_requests.all():
            mates.pay(share)
            assert mates.settled(share) == "reimbursed"
        refunds.accept(order.merchant, order.pk, ref="r", cause=CAUSE)
        assert mates.settled(share) == "refunded"
        one, many = (
            "{count} mate’s card gets its {amount} back too.",
            "{count} mates’ cards get their {amount} back too.",
        )
        assert shows(lea.get(), "Back when a mate paid") and shows(lea.get(), one, many, mates_)

    @pytest.mark.usefixtures("posted")
    def test_after_a_dashboard_refund_of_a_part(self, lea: Payer, shows: Callable[..., bool]) -> None:
        order = captured(lea, name=["Finn"], amount=["20"])
        share = order.payment_requests.get()
        refund_outside(order.payment, 500)
        given = "{shop} refunded you <strong>{amount}</strong>. Your bank may take a few days to show it."
        assert shows(lea.get(), given)
        ended = "{shop} has refunded a payment for this order. Ask {name} whether the order is still valid."
        assert shows(lea.client.get(f"/pay/share/{share.token}"), ended)
        refunds.accept(order.merchant, order.pk, ref="r", cause=CAUSE)
        mates.pump(order.pk, rounds=3)
        assert shows(lea.get(), "Refunded earlier")

    @pytest.mark.usefixtures("posted")
    def test_after_a_lost_dispute(self, lea: Payer, shows: Callable[..., bool], settings: Settings) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        order = captured(lea, name=["Finn"], amount=["20"])
        mates.pay(order.payment_requests.get())
        mates.pump(order.pk)
        decide(dispute(order.payment), is_won=False)
        refunds.accept(order.merchant, order.pk, ref="r", cause=CAUSE)
        mates.pump(order.pk, rounds=3)
        assert shows(lea.get(), "Returned by your bank")

    @pytest.mark.usefixtures("posted")
    def test_of_a_reimbursement_settled_outside(self, lea: Payer, shows: Callable[..., bool]) -> None:
        order = captured(lea, number=RETURNS, name=["Finn"], amount=["20"])
        mates.pay(order.payment_requests.get())
        settle(order)
        settle(order)
        come_back()
        settling_outside.settle_outside(returned(order).pk, note="By bank transfer", cause=CAUSE)
        assert shows(lea.get(), "Paid back another way")
