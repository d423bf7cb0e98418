"""An order's page for operators: where the money is, the work that waits, and the operations so far.

Operators see only the parts that their rights allow.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout import captures, refunds, tasks
from checkout.models import Checkout, Refund
from payments import money
from payments.discrepancies import kinds, reporting
from payments.models import Merchant, Operation
from payments.providers.sandbox import fault_injection
from portal.backoffice.order import format_utc
from portal.models import User
from tests import factories, outside
from tests.factories import CAUSE
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


def page_of(client: Client, order: Checkout) -> str:
    answer = client.get(f"/admin/checkout/checkout/{order.pk}/change/")
    assert answer.status_code == 200
    return str(answer.content.decode())


class TestWhereTheMoneyIs:
    @pytest.mark.parametrize(
        ("status", "words", "badge"),
        [
            ("created", "No money has moved. It can be paid until", "Not paid yet"),
            ("authorized", "The bank holds £90.00 on Visa 4242. It can be captured until", "Held"),
            ("captured", "The merchant has £90.00, since", "Captured"),
            ("refunding", "£90.00 is on its way back to the cards that paid.", "Refunding"),
            ("refunded", "£90.00 went back to the cards that paid, on", "Refunded"),
            ("voided", "the hold of £90.00 on Visa 4242 is being released.", "Voided"),
            ("expired", "No money has moved: it was not paid in time.", "Expired"),
        ],
    )
    def test_is_stated_first_in_a_sentence(
        self, operator: Client, at: Callable[[str], Checkout], status: str, words: str, badge: str
    ) -> None:
        page = page_of(operator, at(status))
        assert words in page and f"{badge}</span>" in page
        assert page.index(words) < page.index("At the bank") < page.index("All fields and records")

    def test_is_shown_as_released_once_the_bank_has_confirmed_it(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        order = at("voided")
        tasks.finish_operations()
        assert "the hold of £90.00 on Visa 4242 was released." in page_of(operator, order)

    def test_is_with_the_bank_while_a_payer_disputes_it(
        self, operator: Client, captured: Checkout, posted: list[int]
    ) -> None:
        outside.dispute(captured.payment)
        page = page_of(operator, captured)
        assert "A payer disputes £90.00: their bank keeps it until the dispute is decided." in page
        assert "Disputed</span>" in page and "The merchant has" not in page

    def test_is_not_on_its_way_once_a_card_has_refused_its_part(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        order = at("refunding")
        (part,) = Operation.objects.filter(kind="refund")
        part.state, part.reason, part.attempts, part.ended_at = "failed", "expired_card", 1, part.created_at
        part.save()
        page = page_of(operator, order)
        assert "£90.00 has not reached Visa 4242." in page and "on its way back" not in page
        part.state, part.reason = "succeeded", ""
        part.save()
        assert "has not reached" not in page_of(operator, order)

    def test_names_the_card_that_has_its_part_of_the_refund(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        shared = at("shared")
        refunds.accept(shared.merchant, shared.pk, ref="r-1", cause=CAUSE)
        parts = Operation.objects.filter(purpose="refund_part")
        parts.update(state="succeeded", attempts=1, ended_at=shared.created_at)
        mate = parts.exclude(payment__subject=shared.pk).get()
        parts.filter(pk=mate.pk).update(state="failed", reason="card_account_closed")
        page = page_of(operator, shared)
        amount = money.display(mate.amount, "GBP")
        assert f"{amount} has not reached a mate’s Mastercard 4444. Visa 4242 has the money back." in page
        assert ">Reimbursement</a>" in page


class TestOpenCases:
    def test_are_sentences_with_actions_and_only_of_this_order(
        self, operator: Client, captured: Checkout, acme: Merchant, pay: Callable[..., Checkout]
    ) -> None:
        other = captures.capture(acme, pay(factories.checkout(acme, merchant_order_id="B-1")).pk, cause=CAUSE)
        reporting.report_operation(
            Operation.objects.get(kind="capture", payment=captured.payment), kinds.ANOTHER_AMOUNT
        )
        page = page_of(operator, captured)
        assert "Needs attention" in page and "The provider reports a different amount" in page
        assert "Close with a note" in page
        assert "Needs attention" not in page_of(operator, other)

    def test_include_an_operation_in_doubt_and_its_start(self, operator: Client, held: Checkout) -> None:
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        sent = Operation.objects.get(kind="capture")
        page = page_of(operator, held).replace("\N{NO-BREAK SPACE}", " ")
        assert f"Sent at {sent.created_at:%H:%M:%S}. No clear answer after 1 try." in page
        assert (
            f"The hold ends at {held.capture_before:%H:%M:%S}. From then on the capture is looked up, never sent again."
            in page
        )
        assert "Look it up now" in page and "In doubt</span>" in page
        assert "The bank might have taken £90.00. It has not answered yet." in page
        assert "If the capture succeeded, the merchant has the money." in page
        assert "Cancel the order" not in page and "The bank holds" not in page


class TestOrderHistory:
    def test_has_a_line_for_each_operation_with_card_and_time(
        self, operator: Client, captured: Checkout
    ) -> None:
        page = page_of(operator, captured)
        capture = Operation.objects.get(kind="capture")
        assert f'/admin/payments/operation/{capture.pk}/change/">Capture</a>' in page
        assert "Authorization</a>" in page and format_utc(capture.ended_at) in page and "Visa 4242" in page

    def test_names_statuses_and_fields_as_the_badges_do(self, operator: Client, held: Checkout) -> None:
        page = page_of(operator, held).partition("<body")[2]
        assert "Authorized</" not in page and "· authorized" not in page and ">Held</td>" in page
        assert ">Return address</label>" in page and ">Hold ends</label>" in page
        assert ">When</th>" in page and ">–</td>" in page
        assert page.index(">From</th>") < page.index(">To</th>")

    def test_shows_a_failed_refund(self, operator: Client, captured: Checkout) -> None:
        refund = {"merchant_refund_ref": "r-1", "status": "failed", "amount": 9000}
        Refund.objects.create(
            merchant=captured.merchant, checkout=captured, created_at=captured.created_at, **refund
        )
        page = page_of(operator, captured)
        assert "Refund failed</span>" in page and ">Refunds</h2>" in page and "Given back" not in page

    def test_says_when_a_refund_failed_and_when_one_was_asked(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        order = at("refunding")
        refund, part = Refund.objects.get(), Operation.objects.get(kind="refund")
        asked, failed = (refund.created_at - timedelta(seconds=seconds) for seconds in (9, 5))
        Refund.objects.update(created_at=asked)
        page = page_of(operator, order)
        assert format_utc(asked) in page[page.index(">Refunds</h2>") :]
        Operation.objects.filter(pk=part.pk).update(state="failed", ended_at=failed)
        Refund.objects.update(status="failed")
        its = page_of(operator, order).partition(">Refunds</h2>")[2].partition("</table>")[0]
        assert format_utc(failed) in its and format_utc(asked) not in its

    def test_counts_the_shares_and_names_no_person(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        shared = at("shared")
        shares = list(shared.payment_requests.all())
        page = page_of(operator, shared)
        assert f"1 of {len(shares)} paid" in page and "Share 2</a>" in page
        assert "a mate’s Mastercard 4444" in page

    def test_says_why_the_bank_refused(self, operator: Client, captured: Checkout) -> None:
        assert "The card’s account is closed." not in page_of(operator, captured)
        Operation.objects.filter(kind="capture").update(state="failed", reason="card_account_closed")
        assert "The card’s account is closed." in page_of(operator, captured)


class TestPermissions:
    def test_hide_open_cases_and_actions_without_the_right(self, client: Client, captured: Checkout) -> None:
        reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT)
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_checkout"))
        people.operate(client, person)
        page = page_of(client, captured)
        assert "The merchant has £90.00" in page and "Needs attention" not in page
        for hidden in ("Capture</a>", "Visa 4242</a></dt>", "Close with a note", "Cancel: release"):
            assert hidden not in page

    def test_the_page_costs_the_same_for_more_operations(self, operator: Client, captured: Checkout) -> None:
        page_of(operator, captured)
        with CaptureQueriesContext(connection) as before:
            page_of(operator, captured)
        Operation.objects.filter(kind="authorize").update(attempts=7)
        reporting.report_operation(Operation.objects.get(kind="capture"), kinds.ANOTHER_AMOUNT)
        reporting.report_operation(Operation.objects.get(kind="capture"), kinds.MISSING_THERE)
        with CaptureQueriesContext(connection) as after:
            page_of(operator, captured)
        assert len(after) == len(before) <= 19
