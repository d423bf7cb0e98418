"""What needs a person, as a sentence with what can be done."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import Checkout
from payments import discrepancies
from payments.models import Discrepancy, Dispute, Merchant, Operation
from portal.models import User
from tests import outside
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


@pytest.fixture
def operator(client: Client) -> Client:
    people.operate(client)
    return client


class TestTheFirstPage:
    def test_leads_with_what_needs_a_person(self, operator: Client, captured: Checkout) -> None:
        capture = Operation.objects.get(kind="capture")
        discrepancies.report_operation(capture, "another_amount", amount=1)
        page = operator.get("/admin/").content.decode()
        assert "The provider says £0.01, we have £90.00</h3>" in page and captured.merchant_order_id in page
        assert page.index("Needs a person") < page.index("All records")
        assert "/admin/checkout/customer/" in page

    def test_says_what_can_be_done_and_does_it_after_a_note(
        self, operator: Client, captured: Checkout
    ) -> None:
        capture = Operation.objects.get(kind="capture")
        discrepancies.report_operation(capture, "another_amount", amount=1)
        page = operator.get("/admin/operations/").content.decode()
        assert "Close with a note" in page and f"/admin/checkout/checkout/{captured.pk}/change/" in page
        assert (
            "The provider says £0.01, we have £90.00. Ask the provider which amount moved, then close" in page
        )
        assert '£89.99 <span class="hint">apart</span>' in page, "by how much they differ"
        key = str(Discrepancy.objects.get().pk)
        asked = operator.post("/admin/payments/discrepancy/", {"action": "close", "_selected_action": key})
        assert asked.status_code == 200 and "Close this discrepancy?" in asked.content.decode()

    def test_shows_less_to_who_may_see_less(self, client: Client) -> None:
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_merchant"))
        people.operate(client, person)
        page = client.get("/admin/").content.decode()
        assert "Merchants" in page and "Needs a person" not in page and "Checkouts" not in page

    def test_asks_at_most_twenty_statements(self, operator: Client, captured: Checkout) -> None:
        for kind in ("another_amount", "missing_there", "in_doubt_for_a_day"):
            discrepancies.report_operation(Operation.objects.get(kind="capture"), kind)
        operator.get("/admin/")
        with CaptureQueriesContext(connection) as asked:
            operator.get("/admin/")
        assert len(asked) <= 20


def test_tells_the_order_of_a_dispute(operator: Client, captured: Checkout, posted: list[int]) -> None:
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
    assert "Send evidence at the provider by 5 Dec, 12:00. Until it is decided" in page
    assert "<p>Answer by 5 Dec, 12:00.</p>" in operator.get("/admin/").content.decode()
    Dispute.objects.update(respond_by=None)
    assert "Send evidence at the provider. Until" in operator.get("/admin/operations/").content.decode()


def test_says_of_a_lost_dispute_what_there_is_to_decide(operator: Client, acme: Merchant) -> None:
    discrepancies.report("dispute_lost", acme.pk, merchant=acme)
    assert (
        "Tell the merchant that it is their loss, then close it.</p>"
        in operator.get("/admin/").content.decode()
    )
    assert "it is the merchant’s loss. Tell the" in operator.get("/admin/operations/").content.decode()


def test_says_of_a_refund_made_elsewhere_how_much_and_what_to_do(operator: Client, acme: Merchant) -> None:
    discrepancies.report("outside_refund", acme.pk, merchant=acme, amount=1000, currency="GBP")
    page = operator.get("/admin/operations/").content.decode()
    assert (
        "The provider shows a refund of £10.00 that nobody began here. Tell the merchant, then book it."
        in page
    )
    assert "Tell the merchant, then book it.</p>" in operator.get("/admin/").content.decode()
    Discrepancy.objects.update(facts={})
    assert "shows a refund that nobody began" in operator.get("/admin/operations/").content.decode()


class TestTheOldest:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("config.operators.cases.SHOWN", 2)

    @pytest.mark.parametrize("path", ["/admin/", "/admin/operations/"])
    def test_are_shown_and_lead_to_the_list_of_all(
        self, operator: Client, acme: Merchant, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kinds = ("missing_here", "forged_notification", "disputed")
        for kind in kinds[:2]:
            discrepancies.report(kind, acme.pk, merchant=acme)
        assert "discrepancies</a>" not in operator.get(path).content.decode()
        discrepancies.report(kinds[2], acme.pk, merchant=acme)
        page = operator.get(path).content.decode()
        everything = "/admin/payments/discrepancy/?state=open"
        assert f'href="{everything}">All 3 discrepancies</a>' in page
        assert f'href="{everything}&amp;kind=disputed">1 dispute</a>' in page
        assert "A notification with a wrong" in page and "A payer disputes" not in page
        monkeypatch.setattr("config.operators.cases.LISTED", 3)
        page = operator.get(path).content.decode()
        assert ">All open discrepancies</a>" in page and ">All open disputes</a>" in page

    def test_are_all_to_who_sees_no_list_of_them(self, client: Client, acme: Merchant) -> None:
        person = User.objects.create_user("x@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        people.operate(client, person)
        for kind in ("missing_here", "forged_notification", "disputed"):
            discrepancies.report(kind, acme.pk, merchant=acme)
        page = client.get("/admin/operations/").content.decode()
        assert "A payer disputes" in page and "discrepancies</a>" not in page

    def test_are_not_the_only_ones_that_the_list_of_disputes_has(
        self, operator: Client, acme: Merchant
    ) -> None:
        for kind in ("missing_here", "disputed"):
            discrepancies.report(kind, acme.pk, merchant=acme)
        page = operator.get("/admin/payments/discrepancy/?state=open&kind=disputed").content.decode()
        table = page[page.index("<tbody>") :]
        assert "A payer disputes" in table and "know nothing of" not in table


def test_says_why_the_bank_refused_and_what_the_verbs_below_do(operator: Client, captured: Checkout) -> None:
    Operation.objects.filter(kind="capture").update(state="failed", reason="card_account_closed")
    discrepancies.report_operation(Operation.objects.get(kind="capture"), "refund_part_failed")
    page = operator.get("/admin/operations/").content.decode()
    said = "The card’s account is closed. The payer has not been paid back. Pay them another way, then choose Settled"
    assert said in page
    Operation.objects.filter(kind="capture").update(reason="expired_or_canceled_card")
    page = operator.get("/admin/operations/").content.decode()
    assert "was cancelled. The payer has not been paid back. Send it again." in page
    assert "on the operation" not in page, "the verbs stand right below"
