"""The portal reads each part of an order only once, and only if the page needs this part."""

import pytest
from django.db import connection
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout
from payments.models import Merchant
from portal.orders import order
from tests.outside import refund_outside

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


def test_an_order_of_another_merchant_is_not_found(rival: Merchant, captured: Checkout) -> None:
    with pytest.raises(Http404):
        order.read_order(rival, captured.pk)


def test_a_captured_order_without_changes_reads_no_accounts(acme: Merchant, captured: Checkout) -> None:
    read = order.read_order(acme, captured.pk)
    with CaptureQueriesContext(connection) as asked:
        assert read.accounts is None
    assert len(asked) == 0


def test_an_order_includes_dashboard_refunds(acme: Merchant, captured: Checkout) -> None:
    refund_outside(captured.payment, 2000)
    accounts = order.read_order(acme, captured.pk).accounts
    assert accounts is not None and accounts.lead is not None
    assert (accounts.lead.outside, accounts.lead.borne) == (2000, 7000)
    assert [row.kind for row in order.read_order(acme, captured.pk).movements] == ["captured", "refunded"]
