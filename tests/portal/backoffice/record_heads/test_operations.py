"""The tops of the pages of operations, payments, refunds, disputes and discrepancies: state, reason, next step."""

import html
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db.models import Model
from django.test import Client

from checkout import captures, refunds
from checkout.models import Checkout, Refund
from config.lib import clock
from config.lib.admin import columns
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Dispute, Operation, Payment
from portal.backoffice.record_heads import registry
from portal.models import User
from tests import outside
from tests.factories import CAUSE
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


def page_of(client: Client, row: Model) -> str:
    """Return the main part of a record's page, above its fields, with its tags."""
    answer = client.get(columns.page_address(row._meta.label_lower, row.pk))
    assert answer.status_code == 200
    page = html.unescape(answer.content.decode())
    return page[page.index('<div class="heading">') : page.index("What operators did")]


def text_of(client: Client, row: Model) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", page_of(client, row)).split())


def address_of(row: Model) -> str:
    return columns.page_address(row._meta.label_lower, row.pk)


@pytest.fixture
def failed(unpaid: Checkout, pay: Callable[..., Checkout], posted: list[int]) -> Refund:
    """Return a refund that failed because the card's account is closed."""
    order = captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
    values = {"state": "failed", "reason": "card_account_closed", "ended_at": clock.now()}
    Operation.objects.filter(kind="refund").update(next_attempt_at=None, **values)
    Refund.objects.update(status="failed", failure_reason="card_account_closed")
    return Refund.objects.get()


class TestEveryModel:
    def test_has_a_top(self) -> None:
        labels = {model._meta.label_lower for model in admin.site._registry} - {"checkout.checkout"}
        assert labels == set(registry.HEADS) | set(registry.SENTENCES)


class TestRefunds:
    def test_that_failed_say_why_and_who_acts(self, operator: Client, failed: Refund) -> None:
        told = text_of(operator, failed)
        assert (
            "Failed" in told and "The card’s account is closed." in told and "card_account_closed" not in told
        )
        assert "The merchant has to pay the payer another way." in told
        assert f'href="{address_of(failed.checkout)}"' in page_of(operator, failed)
        whole = operator.get(address_of(failed)).content.decode()
        assert "card_account_closed" not in whole, "the field has the same words"

    def test_that_the_card_can_take_are_made_again_by_the_merchant(
        self, operator: Client, failed: Refund
    ) -> None:
        Refund.objects.update(failure_reason="processing_error")
        assert "The merchant can make the refund again" in text_of(operator, failed)

    def test_with_an_open_discrepancy_have_its_remedy(self, operator: Client, failed: Refund) -> None:
        part = Operation.objects.get(kind="refund")
        reporting.report_operation(part, kinds.REFUND_PART_FAILED)
        for row in (failed, part):
            assert kinds.REFUND_PART_FAILED.what_to_do in text_of(operator, row)
            assert f'href="{address_of(Discrepancy.objects.get())}"' in page_of(operator, row)
        assert f'class="button button-pen" href="{address_of(part)}"' in page_of(operator, failed)

    def test_on_their_way_and_settled_need_no_action(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        row = at("refunded").refunds.get()
        assert "The money went back at" in text_of(operator, row)
        Refund.objects.update(status="pending", settled_at=None)
        assert "the service asks the bank until it confirms" in text_of(operator, row)


class TestOperations:
    @pytest.mark.parametrize(
        ("state", "told", "step"),
        [
            ("planned", "It has not been sent yet.", "the service sends it"),
            ("in_flight", "the provider has not answered yet", "Look it up"),
            ("unknown", "The provider gave no clear answer", "Look it up"),
            ("pending", "has not confirmed it yet", "the service asks the provider again"),
            ("declined", "The bank declined it", "the payer can use another card"),
            ("succeeded", "It succeeded at", "No action is needed."),
        ],
    )
    def test_explain_their_state_and_the_next_step(
        self, operator: Client, captured: Checkout, state: str, told: str, step: str
    ) -> None:
        row = Operation.objects.get(kind="authorize")
        ended_at = clock.now() if state in Operation.ENDED else None
        Operation.objects.filter(pk=row.pk).update(state=state, ended_at=ended_at)
        text = text_of(operator, row)
        assert "This asks the bank to hold £90.00 on Visa 4242 for Acme Tickets." in text
        assert told in text and step in text
        assert f'href="{address_of(captured)}"' in page_of(operator, row)

    def test_of_a_failed_refund_lead_to_the_refund(self, operator: Client, failed: Refund) -> None:
        part = Operation.objects.get(kind="refund")
        told = text_of(operator, part)
        assert "This pays £90.00 back to Visa 4242" in told and "The card’s account is closed." in told
        assert "The whole refund failed." in told and f'href="{address_of(failed)}"' in page_of(
            operator, part
        )

    def test_link_only_to_pages_that_the_operator_may_see(self, client: Client, captured: Checkout) -> None:
        person = User.objects.create_user("looker@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        people.operate(client, person)
        row = Operation.objects.get(kind="capture")
        assert f'href="{address_of(captured)}"' not in page_of(client, row)


class TestPayments:
    @pytest.mark.parametrize(
        ("status", "told"),
        [("captured", "The money was taken for the merchant."), ("voided", "The hold was released.")],
    )
    def test_say_what_they_pay_and_where_the_money_is(
        self, operator: Client, captured: Checkout, status: str, told: str
    ) -> None:
        Payment.objects.update(status=status)
        row = Payment.objects.get()
        text = text_of(operator, row)
        assert f"Visa 4242 pays £90.00 for order {captured.merchant_order_id} of Acme Tickets. {told}" in text

    def test_that_were_declined_say_why(self, operator: Client, captured: Checkout) -> None:
        Payment.objects.update(status="declined", decline_reason="insufficient_funds")
        page = operator.get(address_of(Payment.objects.get())).content.decode()
        assert "Insufficient funds." in page and "insufficient_funds" not in page


class TestDisputes:
    @pytest.fixture
    def row(self, captured: Checkout, posted: list[int]) -> Dispute:
        return outside.dispute(captured.payment, 2250)

    def test_that_are_open_say_who_acts_until_when(
        self, operator: Client, captured: Checkout, row: Dispute
    ) -> None:
        told, page = text_of(operator, row), page_of(operator, row)
        assert f"The customer disputes £22.50 of order {captured.merchant_order_id}" in told
        assert "The merchant acts first" in told and "evidence by" in told
        assert f'class="button button-pen" href="{address_of(captured)}"' in page
        payment = text_of(operator, row.payment)
        assert "A dispute is open by" in payment or "A dispute is open" in payment
        assert f'href="{address_of(row)}"' in page_of(operator, row.payment)

    def test_that_are_overdue_say_so(self, operator: Client, row: Dispute) -> None:
        Dispute.objects.update(respond_by=clock.now() - timedelta(hours=1))
        assert "The deadline for evidence was" in text_of(operator, row)

    def test_that_are_lost_lead_to_their_discrepancy(self, operator: Client, row: Dispute) -> None:
        outside.decide(row, is_won=False)
        assert kinds.DISPUTE_LOST.what_to_do in text_of(operator, row)
        case = Discrepancy.objects.get(kind=kinds.DISPUTE_LOST.name)
        assert f'class="button button-pen" href="{address_of(row)}"' in page_of(operator, case)

    def test_that_are_won_need_no_action(self, operator: Client, row: Dispute) -> None:
        outside.decide(row, is_won=True)
        told = text_of(operator, row)
        assert "It was decided for the merchant" in told and "No action is needed." in told


class TestDiscrepancies:
    def test_say_their_age_and_link_to_the_page_of_the_remedy(self, operator: Client, failed: Refund) -> None:
        part = Operation.objects.get(kind="refund")
        reporting.report_operation(part, kinds.REFUND_PART_FAILED, part=9000, reason=part.reason)
        row = Discrepancy.objects.get()
        told, page = text_of(operator, row), page_of(operator, row)
        assert "Open for" in told and "The card’s account is closed." in told
        assert "Send again and Settled outside are on the operation’s page." in told
        assert f'class="button button-pen" href="{address_of(part)}"' in page
        assert f'href="{address_of(part.payment)}"' in page
        whole = operator.get(address_of(row)).content.decode()
        assert ">Facts<" in whole and "Part of the refund" in whole and "card account closed" not in whole

    def test_without_facts_have_no_empty_section(self, operator: Client, failed: Refund) -> None:
        reporting.report_operation(Operation.objects.get(kind="refund"), kinds.ANOTHER_AMOUNT)
        assert ">Facts<" not in operator.get(address_of(Discrepancy.objects.get())).content.decode()

    def test_that_are_closed_need_no_action(self, operator: Client, failed: Refund) -> None:
        reporting.report_operation(Operation.objects.get(kind="refund"), kinds.ANOTHER_AMOUNT)
        Discrepancy.objects.update(closed_at=clock.now())
        assert "No action is needed: it was closed at" in text_of(operator, Discrepancy.objects.get())
