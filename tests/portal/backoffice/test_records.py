"""In the operators' lists, each row begins with a description, not with an id. So does the heading of its page."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout import captures, refunds
from checkout.models import Checkout
from config.lib import clock
from hosted_page.models import SmsMessage
from payments.models import Dispute, Merchant, Movement, Operation, Payment, Posting
from portal.models import AuditEntry
from tests import factories, outside
from tests.factories import CAUSE
from tests.portal import people
from tests.portal.backoffice.record_heads.tops import attempt_of
from webhooks.models import Attempt, Delivery, Endpoint, Event

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


def cells(client: Client, model: str) -> list[str]:
    """Return the cell texts of the first row in a list."""
    page = client.get(f"/admin/{model}/").content.decode()
    row = page[page.index("<tbody>") : page.index("</tbody>")].partition("</tr>")[0]
    found = re.split(r"<t[hd][^>]*>", row)[1:]
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in found]


def heading(client: Client, model: str, key: object) -> str:
    page = client.get(f"/admin/{model}/{key}/change/").content.decode()
    found = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]+>", "", found[1]).split())


def test_an_operation_in_doubt_has_the_tries_under_all_keys(operator: Client, unclear: Operation) -> None:
    Operation.objects.filter(pk=unclear.pk).update(attempts=4)
    factories.replace_key(unclear)
    told = [cell for cell in cells(operator, "payments/operation") if cell]
    assert told[0].endswith("4 tries Acme Tickets") and told[2] == "Being sent"


class TestPayments:
    def test_of_a_mate_are_named_as_such(self, operator: Client, at: Callable[[str], Checkout]) -> None:
        shared = at("shared")
        share, order = (Payment.objects.get(kind=kind) for kind in ("share", "order"))
        for row, what in ((share, "A mate’s share"), (order, "Payment")):
            assert heading(operator, "payments/payment", row.pk).startswith(f"{what} of £")
        assert cells(operator, "payments/payment")[0].startswith(
            f"A mate’s share, {shared.merchant_order_id}"
        )


class TestDisputes:
    @pytest.fixture
    def row(self, captured: Checkout, posted: list[int]) -> Dispute:
        return outside.dispute(captured.payment, 2250)

    def test_begin_with_the_order_the_amount_and_the_state(
        self, operator: Client, captured: Checkout, row: Dispute
    ) -> None:
        told = cells(operator, "payments/dispute")
        assert told[0].startswith(f"Dispute, {captured.merchant_order_id} ")
        assert told[1] == "£22.50" and told[2].startswith("Open") and told[-1] == "Acme Tickets"
        assert not any(str(row.pk) in cell for cell in told)

    def test_show_the_payment_as_disputed_while_they_are_open(self, operator: Client, row: Dispute) -> None:
        assert cells(operator, "payments/payment")[1:3] == ["£90.00", "Disputed"]
        outside.decide(row, is_won=True)
        assert cells(operator, "payments/payment")[2] == "Captured"

    def test_show_a_deadline_only_while_they_are_open(self, operator: Client, row: Dispute) -> None:
        assert row.respond_by and "evidence due by" in cells(operator, "payments/dispute")[2]
        outside.decide(row, is_won=False)
        assert cells(operator, "payments/dispute")[2] == "Lost"

    def test_begin_with_the_most_urgent_deadline(
        self, operator: Client, captured: Checkout, row: Dispute
    ) -> None:
        def disputed(reference: str, days: int | None, *, is_decided: bool = False) -> None:
            Dispute.objects.create(
                payment=row.payment,
                checkout_uuid=captured.pk,
                reference=reference,
                amount=len(Dispute.objects.all()) + 1,
                reason="general",
                status="lost" if is_decided else "open",
                opened_at=row.opened_at,
                created_at=row.opened_at,
                respond_by=None if days is None else row.opened_at + timedelta(days=days),
                closed_at=row.opened_at + timedelta(days=1) if is_decided else None,
            )

        Dispute.objects.update(amount=1, respond_by=row.opened_at + timedelta(days=9))
        disputed("lost", 1, is_decided=True)
        disputed("urgent", 2)
        disputed("without a deadline", None)
        page = operator.get("/admin/payments/dispute/").content.decode()
        assert re.findall(r"£0\.0(\d)</td>", page) == ["3", "1", "4", "2"]
        assert "Open ones first, by the deadline for evidence" in page

    def test_are_read_in_the_order_of_an_index(self, row: Dispute) -> None:
        shown: Any = admin.site.get_model_admin(Dispute)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        plan = Dispute.objects.order_by(*shown.ordering)[:50].explain()
        assert "dispute_urgency" in plan and "Sort" not in plan

    def test_have_a_heading_with_the_amount_and_the_order(
        self, operator: Client, captured: Checkout, row: Dispute
    ) -> None:
        told = heading(operator, "payments/dispute", row.pk)
        assert told == f"Dispute of £22.50, {captured.merchant_order_id}"


class TestOtherRecords:
    """Payments, operations, refunds, events, deliveries and audit entries."""

    @pytest.mark.parametrize("model", ["payments/payment", "payments/operation"])
    def test_begin_with_the_order_and_the_amount(
        self, operator: Client, captured: Checkout, model: str
    ) -> None:
        what, state = ("Capture", "Done") if model == "payments/operation" else ("Payment", "Captured")
        told = [cell for cell in cells(operator, model) if cell]  # the cells without the tick box
        assert told[0].startswith(f"{what}, {captured.merchant_order_id} ")
        assert (told[1], told[2], told[-1]) == ("£90.00", state, "Acme Tickets")

    def test_refunds_whose_money_came_back_are_returned(
        self, operator: Client, unpaid: Checkout, pay: Callable[..., Checkout], posted: list[int]
    ) -> None:
        order = captures.capture(unpaid.merchant, pay(unpaid, outside.RETURNS).pk, cause=CAUSE)
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        outside.settle(order)
        told = cells(operator, "checkout/refund")
        assert told[0].startswith(f"Refund, {order.merchant_order_id} Reference r-1")
        assert (told[1], told[2]) == ("£90.00", "Settled")
        outside.come_back()
        assert cells(operator, "checkout/refund")[2] == "Returned"

    def test_events_and_deliveries_name_their_order_and_state(
        self, operator: Client, acme: Merchant, at: Callable[[str], Checkout]
    ) -> None:
        factories.subscribe(acme, url="http://127.0.0.1:9/hooks", event_types=["*"])
        held = at("authorized")
        assert cells(operator, "webhooks/event")[0].startswith(
            f"checkout.authorized, {held.merchant_order_id} "
        )
        told = cells(operator, "webhooks/delivery")
        assert told[1].startswith(f"checkout.authorized, {held.merchant_order_id} 0 attempts")
        assert told[2] == "Waiting" and told[-1] == "Acme Tickets"

    def test_events_have_the_state_of_their_delivery(self, operator: Client, delivery: Delivery) -> None:
        Event.objects.update(superseded_at=clock.now())
        Delivery.objects.update(status="delivered", next_attempt_at=None, ended_at=clock.now())
        assert cells(operator, "webhooks/event")[1] == "Delivered"
        Delivery.objects.all().delete()
        assert cells(operator, "webhooks/event")[1] == "Superseded"

    def test_texts_name_their_order_and_state(self, operator: Client, unpaid: Checkout) -> None:
        now = clock.now()
        about = {"checkout_uuid": unpaid.pk, "subject": unpaid.pk, "merchant": unpaid.merchant}
        SmsMessage.objects.create(kind="code", created_at=now, ends_at=now, phone="+447700900123", **about)
        told = cells(operator, "hosted_page/smsmessage")
        assert told[0].startswith(f"Sign-in code, {unpaid.merchant_order_id} •••• 0123")
        assert (told[1], told[-1]) == ("Waiting", "Acme Tickets")

    def test_shares_name_their_order_amount_and_state(
        self, operator: Client, at: Callable[[str], Checkout]
    ) -> None:
        order = at("shared")
        told = cells(operator, "checkout/paymentrequest")
        assert told[0].startswith(f"Share 3, {order.merchant_order_id}")
        assert (told[1], told[2]) == ("£30.00", "Asked") and told[-1] == "Acme Tickets"
        page = operator.get("/admin/checkout/paymentrequest/").content.decode()
        assert "2 shares</span>" in page and "payment request" not in page

    def test_attempts_are_in_the_order_of_their_start(self, operator: Client, delivery: Delivery) -> None:
        smaller, larger = sorted(
            (attempt_of(delivery), attempt_of(delivery, number=2)), key=lambda row: row.pk
        )
        # An attempt's id begins with the time of the event, so a later attempt can have a smaller id.
        Attempt.objects.filter(pk=smaller.pk).update(started_at=larger.started_at + timedelta(hours=1))
        assert cells(operator, "webhooks/attempt")[0].startswith(f"Attempt {smaller.number} of")

    def test_attempts_name_their_order_the_answer_and_the_state(
        self, operator: Client, delivery: Delivery
    ) -> None:
        attempt_of(delivery)
        told = cells(operator, "webhooks/attempt")
        order = Checkout.objects.get().merchant_order_id
        assert told[0].startswith(f"Attempt 1 of checkout.authorized, {order} The endpoint answered HTTP 500")
        assert told[1] == "Parked" and told[-1] == "Acme Tickets"

    def test_audit_entries_say_what_was_done_and_by_whom(self, operator: Client, acme: Merchant) -> None:
        lea = people.join(acme)
        entry = AuditEntry.objects.create(merchant=acme, user=lea, action="deliveries_resent")
        told = cells(operator, "portal/auditentry")
        assert told[0].startswith(f"Sent deliveries again {lea.email}")
        assert heading(operator, "portal/auditentry", entry.pk) == "Sent deliveries again"

    @pytest.mark.parametrize("model", ["payments/operation", "checkout/refund", "webhooks/delivery"])
    def test_cost_the_same_for_many(
        self, operator: Client, acme: Merchant, pay: Callable[..., Checkout], model: str
    ) -> None:
        factories.subscribe(acme, url="http://127.0.0.1:9/hooks", event_types=["*"])

        def statements(number: int) -> int:
            order = captures.capture(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
            refunds.accept(acme, order.pk, ref=f"r-{number}", cause=CAUSE)
            with CaptureQueriesContext(connection) as done:
                assert operator.get(f"/admin/{model}/").status_code == 200
            return len(done)

        statements(0)
        assert statements(1) == statements(2)


def test_an_endpoint_shows_its_error_only_while_it_is_failing(operator: Client, delivery: Delivery) -> None:
    endpoint = Endpoint.objects.create(subscription=delivery.subscription, last_error="HTTP 500")
    assert "HTTP 500" not in " ".join(cells(operator, "webhooks/endpoint"))
    Endpoint.objects.update(failing_since=clock.now())
    assert "HTTP 500" in " ".join(cells(operator, "webhooks/endpoint"))
    page = operator.get(f"/admin/webhooks/endpoint/{endpoint.pk}/change/").content.decode()
    assert ">http://127.0.0.1:9/<wbr>hooks</a>" in page


def test_postings_explain_their_sign(operator: Client, captured: Checkout) -> None:
    posting, movement = Posting.objects.first(), Movement.objects.first()
    assert posting and movement
    for address in ("posting/", f"posting/{posting.pk}/change/", f"movement/{movement.pk}/change/"):
        page = operator.get(f"/admin/payments/{address}").content.decode()
        assert (
            "minus means that the service owes the account more, or the account owes the service less."
            in page
        )
