"""Each case that needs an operator is shown as a sentence, with the actions that are possible."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout, PaymentRequest, Refund
from config.lib import clock
from config.lib.admin import columns
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Dispute, Merchant, Operation
from portal.models import User
from tests import outside
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


class TestTheFirstPage:
    def test_starts_with_open_discrepancies(self, operator: Client, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        reporting.report_operation(capture, kinds.ANOTHER_AMOUNT, amount=1)
        page = operator.get("/admin/").content.decode()
        assert "The provider says £0.01, we have £90.00</h3>" in page and captured.merchant_order_id in page
        assert page.index("Needs attention") < page.index("All records")
        assert "/admin/checkout/customer/" in page

    def test_offers_an_action_and_carries_it_out_after_a_note(
        self, operator: Client, captured: Checkout
    ) -> None:
        capture = Operation.objects.get(kind="capture")
        reporting.report_operation(capture, kinds.ANOTHER_AMOUNT, amount=1)
        page = operator.get("/admin/operations/").content.decode()
        assert "Close with a note" in page and f"/admin/checkout/checkout/{captured.pk}/change/" in page
        assert (
            "The provider says £0.01, we have £90.00. Ask the provider which amount moved, then close" in page
        )
        assert '£89.99 <span class="hint">difference</span>' in page, "by how much they differ"
        key = str(Discrepancy.objects.get().pk)
        asked = operator.post("/admin/payments/discrepancy/", {"action": "close", "_selected_action": key})
        assert asked.status_code == 200 and "Close this discrepancy?" in asked.content.decode()

    def test_shows_only_what_the_user_can_view(self, client: Client) -> None:
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_merchant"))
        people.operate(client, person)
        page = client.get("/admin/").content.decode()
        assert "Merchants" in page and "Needs attention" not in page and "Checkouts" not in page

    def test_runs_at_most_twenty_statements(self, operator: Client, captured: Checkout) -> None:
        for kind in (kinds.ANOTHER_AMOUNT, kinds.MISSING_THERE, kinds.IN_DOUBT_FOR_A_DAY):
            reporting.report_operation(Operation.objects.get(kind="capture"), kind)
        operator.get("/admin/")
        with CaptureQueriesContext(connection) as asked:
            operator.get("/admin/")
        assert len(asked) <= 20


def test_shows_the_order_of_a_dispute(operator: Client, captured: Checkout, posted: list[int]) -> None:
    outside.dispute(captured.payment)
    page = operator.get("/admin/operations/").content.decode()
    assert f'A payer disputes a charge, <bdi class="whole">{captured.merchant_order_id}</bdi>' in page
    assert "£90.00" in page and f"/admin/payments/dispute/{Dispute.objects.get().pk}/change/" in page
    assert page.index(">Open the dispute</a>") < page.index(">Close with a note</a>")
    records = operator.get("/admin/").content.decode().partition('id="records"')[2]
    assert "1 open" in records.partition(">Disputes</a>")[2][:99]


def test_says_until_when_a_dispute_can_be_answered(
    operator: Client, captured: Checkout, posted: list[int]
) -> None:
    outside.dispute(captured.payment)
    Dispute.objects.update(respond_by=datetime(2026, 12, 5, 12, tzinfo=UTC))
    page = operator.get("/admin/operations/").content.decode()
    assert (
        "<p>Answer by 5 Dec, 12:00. The payer’s bank has taken the money back. When the merchant mails evidence"
        in page
    )
    assert "<p>Answer by 5 Dec, 12:00.</p>" in operator.get("/admin/").content.decode()
    Dispute.objects.update(respond_by=None)
    assert "<p>The payer’s bank has taken" in operator.get("/admin/operations/").content.decode()


def test_shows_what_to_do_about_a_case_without_a_known_reason(operator: Client, acme: Merchant) -> None:
    reporting.report(kinds.OUTSIDE_CAPTURE, acme.pk, merchant=acme, amount=1000, currency="GBP")
    for address in ("/admin/", "/admin/operations/"):
        assert f"<p>{kinds.OUTSIDE_CAPTURE.what_to_do}</p>" in operator.get(address).content.decode()
    assert f"{kinds.OUTSIDE_CAPTURE.sentence}, £10.00</h3>" in operator.get("/admin/").content.decode()


class TestTheOldest:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("portal.backoffice.cases.MAX_SHOWN", 2)

    @pytest.mark.parametrize("path", ["/admin/", "/admin/operations/"])
    def test_are_shown_and_lead_to_the_list_of_all(
        self, operator: Client, acme: Merchant, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for kind in (kinds.MISSING_HERE, kinds.FORGED_NOTIFICATION):
            reporting.report(kind, acme.pk, merchant=acme)
        assert "discrepancies</a>" not in operator.get(path).content.decode()
        reporting.report(kinds.DISPUTED, acme.pk, merchant=acme)
        page = operator.get(path).content.decode()
        everything = "/admin/payments/discrepancy/?state=open"
        assert f'href="{everything}">All 3 discrepancies</a>' in page
        assert f'href="{everything}&amp;kind=disputed">1 dispute</a>' in page
        assert kinds.FORGED_NOTIFICATION.sentence in page and "A payer disputes" not in page
        monkeypatch.setattr("portal.backoffice.cases.MAX_LISTED", 3)
        page = operator.get(path).content.decode()
        assert ">All open discrepancies</a>" in page and ">All open disputes</a>" in page

    def test_are_all_discrepancies_for_users_who_cannot_see_the_list(
        self, client: Client, acme: Merchant
    ) -> None:
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        people.operate(client, person)
        for kind in (kinds.MISSING_HERE, kinds.FORGED_NOTIFICATION, kinds.DISPUTED):
            reporting.report(kind, acme.pk, merchant=acme)
        page = client.get("/admin/operations/").content.decode()
        assert "A payer disputes" in page and "discrepancies</a>" not in page

    def test_link_to_a_list_with_only_that_kind(self, operator: Client, acme: Merchant) -> None:
        for kind in (kinds.MISSING_HERE, kinds.DISPUTED):
            reporting.report(kind, acme.pk, merchant=acme)
        page = operator.get("/admin/payments/discrepancy/?state=open&kind=disputed").content.decode()
        table = page[page.index("<tbody>") :]
        assert "A payer disputes" in table and "unknown here" not in table


def test_explains_the_banks_refusal_and_the_available_actions(operator: Client, captured: Checkout) -> None:
    Operation.objects.filter(kind="capture").update(state="failed", reason="card_account_closed")
    reporting.report_operation(Operation.objects.get(kind="capture"), kinds.REFUND_PART_FAILED)
    page = operator.get("/admin/operations/").content.decode()
    assert f"The card’s account is closed. {kinds.REFUND_PART_FAILED.what_to_do}" in page
    Operation.objects.filter(kind="capture").update(reason="expired_or_canceled_card")
    page = operator.get("/admin/operations/").content.decode()
    assert f"was cancelled. {kinds.REFUND_PART_FAILED.what_to_do}" in page


def test_counts_three_days_of_tries_from_the_first_one(operator: Client, captured: Checkout) -> None:
    refund = _refund_of(captured, status="pending")
    first = clock.now() - timedelta(days=3, minutes=1)
    for created_at in (first, first + timedelta(hours=1)):
        part = _failed_operation(captured, created_at, purpose="refund_part", refund_uuid=refund.pk)
    reporting.report_operation(part, kinds.REFUND_PART_FAILED)
    told = [operator.get(path).content.decode() for path in ("/admin/operations/", _page_address_of(part))]
    assert all("you can send it again at once" in page for page in told)
    assert not any(kinds.RETRIED_HOURLY in page for page in told), "the later try is not yet three days old"
    Operation.objects.filter(created_at=first).update(state="planned", ended_at=None)
    assert kinds.RETRIED_HOURLY in operator.get("/admin/operations/").content.decode()


def test_says_that_a_whole_refund_failed_without_buttons_that_fail(
    operator: Client, captured: Checkout
) -> None:
    refund = _refund_of(captured, status="failed")
    part = _failed_operation(captured, clock.now(), purpose="refund_part", refund_uuid=refund.pk)
    reporting.report_operation(part, kinds.REFUND_PART_FAILED)
    page = operator.get("/admin/operations/").content.decode()
    assert "The whole refund failed, so the merchant has the money" in page
    assert ">Send again</a>" not in page and ">Settled outside</a>" not in page
    assert ">Close with a note</a>" in page


def test_two_refunds_of_one_card_name_their_purpose(operator: Client, captured: Checkout) -> None:
    assert captured.payment is not None
    share = PaymentRequest.objects.create(checkout=captured, position=2, amount=3000, name="Finn")
    refund = _refund_of(captured, status="failed")
    parts = (("reimbursement", {"share_uuid": share.pk}), ("refund_part", {"refund_uuid": refund.pk}))
    for purpose, of in parts:
        made = _failed_operation(captured, clock.now(), purpose=purpose, **of)
        reporting.report_operation(made, kinds.REFUND_RETURNED)
    page = operator.get("/admin/").content.decode()
    assert "(for Finn’s share, to the lead’s card)" in page and "(refund to the lead’s card)" in page


def _refund_of(checkout: Checkout, *, status: str) -> Refund:
    return Refund.objects.create(
        merchant=checkout.merchant,
        checkout=checkout,
        merchant_refund_ref="r-1",
        amount=checkout.amount,
        status=status,
        created_at=clock.now(),
    )


def _failed_operation(checkout: Checkout, created_at: datetime, **facts: Any) -> Operation:
    assert checkout.payment is not None
    return Operation.objects.create(
        payment=checkout.payment,
        kind="refund",
        amount=3000,
        state="failed",
        created_at=created_at,
        ended_at=clock.now(),
        **facts,
    )


def _page_address_of(row: Operation) -> str:
    return columns.page_address(row._meta.label_lower, row.pk)
