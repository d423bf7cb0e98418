"""The page that asks an operator to confirm an action shows the facts about the row.

The facts are the row's amount, and the time at which it reached its state. Lists show both in the same form.
"""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from checkout.models import Checkout
from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation
from portal.backoffice import subjects
from portal.backoffice.order import format_utc
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


@pytest.mark.parametrize(("state", "word"), [("failed", "failed"), ("declined", "declined")])
def test_an_operation_that_has_ended_says_when_and_how(captured: Checkout, state: str, word: str) -> None:
    rows = Operation.objects.filter(kind="capture")
    rows.update(state=state, created_at=clock.now() - timedelta(minutes=2))
    (shown,) = subjects.describe_rows(list(rows))
    assert (shown.time_label, shown.at) == (word, rows.get().ended_at)


def test_an_open_operation_shows_when_it_started(captured: Checkout) -> None:
    rows = Operation.objects.filter(kind="capture")
    rows.update(state="unknown", ended_at=None)
    (shown,) = subjects.describe_rows(list(rows))
    assert (shown.time_label, shown.at) == ("since", rows.get().created_at)


def test_an_order_says_when_it_was_made(captured: Checkout) -> None:
    (shown,) = subjects.describe_rows([captured])
    assert (shown.time_label, shown.at) == ("created", captured.created_at)


def test_a_discrepancy_shows_the_same_amount_and_time_on_every_page(
    client: Client, captured: Checkout
) -> None:
    people.operate(client)
    reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT, amount=4850)
    told = Discrepancy.objects.get()
    for address in (
        reverse("admin_operations"),
        reverse("admin:checkout_checkout_change", args=[captured.pk]),
        reverse("admin:payments_discrepancy_changelist"),
        reverse("admin_ask", args=["close", told.pk]),
    ):
        page = client.get(address).content.decode()
        assert (
            '£41.50 <span class="hint">difference</span>' in page and format_utc(told.created_at) in page
        ), address
    assert '<strong class="case-amount">£90.00' not in page
