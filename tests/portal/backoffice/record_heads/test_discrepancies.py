"""The tops of discrepancy pages show the age, the cause, and a link to the remedy's page."""

from datetime import timedelta

import pytest
from django.test import Client

from checkout.models import Checkout, Refund
from config.lib import clock
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation
from tests import outside
from tests.portal.backoffice.record_heads.tops import address_of, main_button, page_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


class TestDiscrepancies:
    def test_say_their_age_and_link_to_the_page_of_the_remedy(self, operator: Client, failed: Refund) -> None:
        Refund.objects.update(settled_at=clock.now())  # the card got the money, and its bank returned it
        part = Operation.objects.get(kind="refund")
        reporting.report_operation(part, kinds.REFUND_PART_FAILED, part=9000, reason=part.reason)
        row = Discrepancy.objects.get()
        told, page = text_of(operator, row), page_of(operator, row)
        assert "Open for" in told and "The card’s account is closed." in told
        order = failed.checkout.merchant_order_id
        assert told.startswith(f"A refund of £90.00 did not reach the lead’s card, {order} Open for")
        assert told.count(order) == 1 and "Reported for Acme Tickets on" in told
        assert "Send again and Settled outside are on the operation’s page." in told
        assert f'class="button button-pen" href="{address_of(part)}"' in page
        assert (
            f'href="{address_of(part.payment)}"' in page
            and main_button(operator, row) == "Open the operation"
        )
        whole = operator.get(address_of(row)).content.decode()
        assert ">Facts<" in whole and "Part of the refund" in whole and "card account closed" not in whole

    def test_of_a_whole_failed_refund_are_only_closed(self, operator: Client, failed: Refund) -> None:
        part = Operation.objects.get(kind="refund")
        reporting.report_operation(part, kinds.REFUND_PART_FAILED)
        row = Discrepancy.objects.get()
        told = text_of(operator, row)
        assert "Inform the merchant, then close the discrepancy." in told and "operation’s page" not in told
        assert main_button(operator, row) == "Close with a note"
        for other in (part, part.payment, failed):
            assert "Close with a note is on the discrepancy’s page." in text_of(operator, other)
            assert main_button(operator, other) == "Open the discrepancy"

    def test_name_only_remedies_that_the_operation_offers(self, operator: Client, unclear: Operation) -> None:
        reporting.report_operation(unclear, kinds.IN_DOUBT_FOR_A_DAY)
        row = Discrepancy.objects.get()
        told = text_of(operator, row)
        assert "Give up the operation is on the operation’s page." in told
        assert main_button(operator, row) == "Open the operation"
        Operation.objects.filter(pk=unclear.pk).update(state="failed", ended_at=clock.now())
        assert main_button(operator, row) == "Close with a note"

    @pytest.mark.usefixtures("posted")
    def test_of_an_open_dispute_have_no_filled_button(self, operator: Client, captured: Checkout) -> None:
        dispute = outside.dispute(captured.payment)
        row = Discrepancy.objects.get(kind=kinds.DISPUTED.name)
        assert main_button(operator, row) == "" and f'href="{address_of(dispute)}"' in page_of(operator, row)

    def test_name_hourly_tries_only_for_three_days(self, operator: Client, failed: Refund) -> None:
        Refund.objects.update(settled_at=clock.now())  # the card got the money, and its bank returned it
        part = Operation.objects.get(kind="refund")
        reporting.report_operation(part, kinds.REFUND_PART_FAILED)
        row = Discrepancy.objects.get()
        for shown in (row, part):
            assert "tries again each hour" in text_of(operator, shown)
        Operation.objects.filter(pk=part.pk).update(created_at=clock.now() - timedelta(days=3, minutes=1))
        for shown in (row, part):
            told = text_of(operator, shown)
            assert "each hour" not in told and "If the card can take the money, you can send it again" in told

    def test_that_differ_do_not_repeat_their_heading(self, operator: Client, captured: Checkout) -> None:
        reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT, amount=1)
        told = text_of(operator, Discrepancy.objects.get())
        assert told.count("The provider says £0.01, we have £90.00") == 1

    def test_without_facts_have_no_empty_section(self, operator: Client, failed: Refund) -> None:
        reporting.report_operation(Operation.objects.get(kind="refund"), kinds.ANOTHER_AMOUNT)
        assert ">Facts<" not in operator.get(address_of(Discrepancy.objects.get())).content.decode()

    def test_that_are_closed_need_no_action(self, operator: Client, failed: Refund) -> None:
        reporting.report_operation(Operation.objects.get(kind="refund"), kinds.ANOTHER_AMOUNT)
        Discrepancy.objects.update(closed_at=clock.now())
        assert "No action is needed: it was closed on" in text_of(operator, Discrepancy.objects.get())
