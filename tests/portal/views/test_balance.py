"""The balance: what the movements add up to, on the page and in the file."""

import csv
from typing import Any

import pytest
from django.test import Client

from checkout import refunds
from payments.models import Merchant
from portal.models import AuditEntry, Role
from tests import factories, mates
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.ADMIN))


class TestBalance:
    def test_is_what_the_movements_add_up_to(self, acme: Merchant, client: Client) -> None:
        stage.captured(acme)
        stage.captured(acme, merchant_order_id="A-2")
        page = client.get("/portal/balance").content.decode()
        assert "£180.00" in page and page.count("£90.00") == 2
        answer: Any = client.get("/portal/balance.csv")
        _, *lines = csv.reader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines())
        assert len(lines) == 2 and sum(float(line[2]) for line in lines) == 180.0
        assert AuditEntry.objects.filter(action="exported").exists()

    def test_file_holds_refunds_as_numbers(self, acme: Merchant, client: Client) -> None:
        captured = stage.captured(acme)
        refunds.accept(acme, captured.pk, ref="r-1", cause=factories.CAUSE)
        for _ in range(3):
            mates.pump(captured.pk)
        answer: Any = client.get("/portal/balance.csv")
        _, *lines = csv.reader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines())
        assert [float(line[2]) for line in lines] == [-90.0, 90.0]
