"""The team writes notes on an order. Notes never change. They are deleted when the order's customer is erased."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from checkout.models import Checkout, Customer
from config.lib import clock
from payments.models import Merchant
from portal import tasks
from portal.models import AuditEntry, CheckoutNote, Role
from portal.views.orders import notes
from tests.portal import stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.SUPPORT, "sam@acme.example"))


def write(client: Client, checkout: Checkout, text: str) -> Any:
    return client.post(f"/portal/checkouts/{checkout.pk}/notes", {"text": text}, follow=True)


@pytest.mark.rule("portal.notes")
class TestNotes:
    def test_are_read_by_the_team_and_audited_without_their_words(
        self, client: Client, captured: Checkout
    ) -> None:
        words = write(client, captured, "They called.\n<b>Twice</b>").content.decode()
        assert "They called.<br>&lt;b&gt;Twice&lt;/b&gt;" in words and "sam@acme.example" in words
        viewer = stage.browser(stage.person(captured.merchant, Role.VIEWER))
        words = viewer.get(f"/portal/checkouts/{captured.pk}").content.decode()
        assert "They called." in words and "Write a note" not in words
        entry = AuditEntry.objects.get(action="note_written")
        assert entry.facts == {"checkout": str(captured.pk), "order": captured.merchant_order_id}

    def test_are_refused_if_empty_too_long_or_too_many(
        self, client: Client, captured: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for text in ("", "  ", "x" * 1001):
            assert "The note was not saved" in write(client, captured, text).content.decode()
        monkeypatch.setattr(notes, "MAX_NOTES", 1)
        write(client, captured, "x" * 1000)
        assert "can have at most 1 notes" in write(client, captured, "One more").content.decode()
        assert CheckoutNote.objects.count() == 1

    def test_are_never_changed(self, client: Client, captured: Checkout) -> None:
        write(client, captured, "They called.")
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            CheckoutNote.objects.update(text="They did not.")

    def test_are_deleted_with_the_orders_customer(self, client: Client, captured: Checkout) -> None:
        write(client, captured, "They called.")
        tasks.delete_notes()
        assert CheckoutNote.objects.exists()
        assert captured.lead_id is not None
        Customer.objects.filter(pk=captured.lead_id).update(phone=None, name="", erased_at=clock.now())
        tasks.delete_notes()
        assert not CheckoutNote.objects.exists()
