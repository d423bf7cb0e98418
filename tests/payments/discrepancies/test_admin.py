"""In the admin, operators close discrepancies, and add notes to them."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from checkout.models import Checkout
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Dispute, Merchant
from tests import outside
from tests.operator_actions import Act, acting, log_of, looker

pytestmark = pytest.mark.django_db
DISCREPANCIES = "/admin/payments/discrepancy/"


@pytest.fixture
def post_action(client: Client) -> Act:
    return acting(client)


class TestClosing:
    @pytest.fixture
    def found(self, acme: Merchant) -> Discrepancy:
        reporting.report(kinds.ANOTHER_AMOUNT, acme.pk, merchant=acme)
        return Discrepancy.objects.get()

    def test_stores_the_note_and_a_recurrence_is_reported_again(
        self, post_action: Act, found: Discrepancy
    ) -> None:
        assert f"Closed: {kinds.ANOTHER_AMOUNT.sentence}." in post_action(
            DISCREPANCIES, "close", found, words="The bank was wrong."
        )
        found.refresh_from_db()
        at = found.closed_at
        assert at is not None
        operator = LogEntry.objects.get(object_id=str(found.pk)).user
        assert found.note == f"{at.day} {at:%b %Y %H:%M} UTC, {operator}: The bank was wrong."
        assert log_of(found) == ["Closed: The bank was wrong."]
        reporting.report(kinds.ANOTHER_AMOUNT, found.subject)
        assert Discrepancy.objects.filter(closed_at=None).count() == 1

    def test_asks_for_the_note_first(self, post_action: Act, found: Discrepancy) -> None:
        assert "What came of it" in post_action(DISCREPANCIES, "close", found)
        assert "field-error" in post_action(DISCREPANCIES, "close", found, words="")
        found.refresh_from_db()
        assert found.closed_at is None and log_of(found) == []

    def test_of_a_closed_discrepancy_changes_nothing(
        self, post_action: Act, client: Client, found: Discrepancy
    ) -> None:
        closed = reporting.close_discrepancy(found.pk, note="First.", author="olga@pay.example")
        assert "was closed already" in post_action(DISCREPANCIES, "close", found, words="Second.")
        client.post(f"{DISCREPANCIES}{found.pk}/change/", {"note": "Third."})
        found.refresh_from_db()
        assert (found.note, found.closed_at) == (closed.note, closed.closed_at) and log_of(found) == []
        assert "was closed already" in post_action(DISCREPANCIES, "add_note", found, words="Fourth.")

    def test_adds_to_the_notes_of_a_discrepancy_that_stayed_open(
        self, post_action: Act, client: Client, found: Discrepancy
    ) -> None:
        assert "Note added" in post_action(DISCREPANCIES, "add_note", found, words="Asked the bank.")
        found.refresh_from_db()
        assert found.closed_at is None and log_of(found) == ["Noted: Asked the bank."]
        post_action(DISCREPANCIES, "close", found, words="It was wrong.")
        found.refresh_from_db()
        first, second = found.note.split("\n")
        assert first.endswith(": Asked the bank.")
        assert second.endswith(": It was wrong.") and found.closed_at is not None

    def test_is_the_only_way_to_write_a_note(self, operator: Client, found: Discrepancy) -> None:
        address = f"{DISCREPANCIES}{found.pk}/change/"
        assert "<textarea" not in operator.get(address).content.decode()
        operator.post(address, {"note": "Mischief", "kind": "mine"})
        found.refresh_from_db()
        assert (found.note, found.kind) == ("", "another_amount")

    def test_is_refused_to_users_who_can_only_view(self, found: Discrepancy) -> None:
        client = looker("view_discrepancy")
        form = {"action": "close", "_selected_action": str(found.pk), "confirmed": "1", "words": "Mischief"}
        client.post(DISCREPANCIES, form)
        found.refresh_from_db()
        assert found.closed_at is None and log_of(found) == []


class TestPage:
    def test_begins_with_words_and_folds_the_facts(
        self, operator: Client, captured: Checkout, posted: list[int]
    ) -> None:
        outside.dispute(captured.payment, 2250)
        page = operator.get(f"{DISCREPANCIES}{Discrepancy.objects.get().pk}/change/").content.decode()
        heading = f"{kinds.DISPUTED.sentence}, £22.50, {captured.merchant_order_id}"
        assert heading in re.sub(r"<[^>]+>", "", page[page.index("<h1>") : page.index("</h1>")])
        assert "Change discrepancy" not in page and "It closes automatically" not in page
        words, facts = page.split("<summary>")
        assert f"/admin/checkout/checkout/{captured.pk}/change/" in words
        assert "&quot;amount&quot;" not in page and "fact_amount" in words and "£22.50" in words
        assert (
            "Evidence until" in words
            and f"/admin/payments/dispute/{Dispute.objects.get().pk}/change/" in words
        )
        assert "docs/operate.md#" in facts and "docs/operate.md#" not in words
