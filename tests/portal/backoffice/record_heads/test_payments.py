"""The tops of payment, refund and dispute pages show the state, the reason, and who must act."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from checkout.models import Checkout, Refund
from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Dispute, Operation, Payment
from tests import outside
from tests.portal.backoffice.record_heads.tops import address_of, main_button, page_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


class TestRefunds:
    def test_that_failed_say_why_and_who_acts(self, operator: Client, failed: Refund) -> None:
        told = text_of(operator, failed)
        assert (
            "Failed" in told and "The card’s account is closed." in told and "card_account_closed" not in told
        )
        assert "The merchant has to pay the payer another way." in told
        assert f'href="{address_of(failed.checkout)}"' in page_of(operator, failed)
        part = Operation.objects.get(kind="refund")
        assert f'href="{address_of(part)}">Open the operation<' in page_of(operator, failed)
        whole = operator.get(address_of(failed)).content.decode()
        assert "card_account_closed" not in whole, "the field has the same words"

    def test_that_the_card_can_take_are_made_again_by_the_merchant(
        self, operator: Client, failed: Refund
    ) -> None:
        Refund.objects.update(failure_reason="processing_error")
        assert "The merchant can make the refund again" in text_of(operator, failed)

    def test_with_an_open_discrepancy_have_its_remedy(self, operator: Client, failed: Refund) -> None:
        # The card got the money, and its bank returned it.
        Refund.objects.update(settled_at=failed.created_at)
        part = Operation.objects.get(kind="refund")
        reporting.report_operation(part, kinds.REFUND_PART_FAILED)
        for row in (failed, part):
            assert kinds.REFUND_PART_FAILED.what_to_do in text_of(operator, row)
            assert f'href="{address_of(Discrepancy.objects.get())}"' in page_of(operator, row)
        assert main_button(operator, failed) == main_button(operator, part.payment) == "Open the operation"
        assert "Send again and Settled outside are on the operation’s page." in text_of(operator, failed)
        assert main_button(operator, part) == "Settled outside"
        assert "This card cannot take the money." in text_of(operator, part)
        Operation.objects.update(reason="refused")
        assert main_button(operator, part) == "Send again"
        assert "This card cannot take the money." not in text_of(operator, part)

    def test_on_their_way_and_settled_need_no_action(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        row = at("refunded").refunds.get()
        assert "The money went back on" in text_of(operator, row)
        Refund.objects.update(status="pending", settled_at=None)
        assert "the service asks the bank until it confirms" in text_of(operator, row)


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

    @pytest.mark.rule("money.discrepancy")
    def test_with_a_discrepancy_that_a_person_closes_lead_to_it(
        self, operator: Client, captured: Checkout
    ) -> None:
        capture = Operation.objects.select_related("payment").get(kind="capture")
        reporting.report_operation(capture, kinds.ANOTHER_AMOUNT)
        for row in (capture, capture.payment):
            assert "then close the discrepancy" in text_of(operator, row)
            assert main_button(operator, row) == "Open the discrepancy"

    def test_of_a_mate_go_to_the_lead(self, operator: Client, at: Callable[[str], Checkout]) -> None:
        at("shared")
        told = text_of(operator, Payment.objects.get(kind="share"))
        assert (
            "The money was taken, and is reimbursed to the lead." in told and "for the merchant" not in told
        )


class TestDisputes:
    @pytest.fixture
    def row(self, captured: Checkout, posted: list[int]) -> Dispute:
        return outside.dispute(captured.payment, 2250)

    def test_that_are_open_say_who_acts_until_when(
        self, operator: Client, captured: Checkout, row: Dispute
    ) -> None:
        told, page = text_of(operator, row), page_of(operator, row)
        assert f"The customer disputes £22.50 of order {captured.merchant_order_id}" in told
        assert "The merchant acts first" in told and "evidence due by" in told
        assert "Send what you receive to the provider by" in told
        assert f'href="{address_of(captured)}"' in page and main_button(operator, row) == ""
        assert main_button(operator, row.payment) == "Open the dispute"
        payment = text_of(operator, row.payment)
        assert "Disputed" in payment and "A dispute is open. Evidence is due by" in payment
        assert f'href="{address_of(row)}"' in page_of(operator, row.payment)

    def test_that_are_overdue_say_so(self, operator: Client, row: Dispute) -> None:
        Dispute.objects.update(respond_by=clock.now() - timedelta(hours=1))
        assert "The deadline for evidence was" in text_of(operator, row)

    def test_that_are_lost_lead_to_their_discrepancy(self, operator: Client, row: Dispute) -> None:
        outside.decide(row, is_won=False)
        told = text_of(operator, row)
        assert kinds.DISPUTE_LOST.what_to_do in told and told.count("bears the loss") == 1
        assert "The customer disputed £22.50" in told and "The bank decided for the customer on" in told
        case = Discrepancy.objects.get(kind=kinds.DISPUTE_LOST.name)
        assert f'href="{address_of(row)}"' in page_of(operator, case)
        assert main_button(operator, case) == "Close with a note"
        for shown in (row, row.payment):
            assert "A dispute is lost." in text_of(operator, shown)
            assert main_button(operator, shown) == "Open the discrepancy"

    def test_that_are_won_need_no_action(self, operator: Client, row: Dispute) -> None:
        outside.decide(row, is_won=True)
        told = text_of(operator, row)
        assert "The bank decided for the merchant on" in told and "No action is needed." in told
