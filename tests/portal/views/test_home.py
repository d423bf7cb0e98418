"""The figures on the home page are written as sentences."""

import re

import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from portal.dashboard import hourly_counts
from portal.models import Role
from tests.outside import refund_outside
from tests.portal import stage

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.VIEWER)


@pytest.mark.usefixtures("posted")
@pytest.mark.rule("sync.outside")
def test_a_refund_in_the_banks_dashboard_is_no_refunded_order(client: Client, captured: Checkout) -> None:
    refund_outside(captured.payment, 2000)
    hourly_counts.catch_up(clock.now())
    words = re.sub(r"<[^>]+>", " ", client.get("/portal").content.decode())
    assert re.search(r"Orders refunded\s+£0\.00\s+0 orders", words), "the order is still captured"
