"""`sync` records a payment's books once, and never overwrites records from a later reading."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout import refunds, tasks
from checkout.models import Checkout
from checkout.syncing import sync
from config.lib import clock
from payments.inquiring import inquiries, reconciliation
from payments.models import Discrepancy, Inquiry, Movement, Payment
from payments.provider import ProviderUnreachable
from payments.providers.sandbox import client
from payments.providers.sandbox import settling as bank_settling
from payments.providers.sandbox.models import Call
from tests import mates, outside
from tests.factories import CAUSE
from tests.outages import break_down
from tests.refusals import nothing_moves

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted", "proven"),
    pytest.mark.rule("sync.books"),
]


def test_books_read_before_a_later_sync_change_nothing(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process reads the books and is suspended. In the meantime, another process reads and records newer books."""
    assert captured.payment_id is not None
    found = outside.dispute(captured.payment)
    old = client.call_bank("movements", payment=captured.payment_id)
    outside.decide(found, is_won=True)
    read_at = Payment.objects.values_list("synced_at", flat=True).get()
    assert found.status == "won" and read_at is not None

    def ask(**_: Any) -> Any:
        Payment.objects.update(synced_at=clock.now())
        return old

    monkeypatch.setitem(client.BANK_CALLS, "movements", ask)
    with nothing_moves():
        assert not sync.sync(captured.payment_id)
    found.refresh_from_db()
    assert found.status == "won"


def test_a_refund_recorded_after_the_books_were_read_is_not_reported_as_missing(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert captured.payment_id is not None
    old = client.call_bank("movements", payment=captured.payment_id)
    refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)

    def ask(**_: Any) -> Any:
        outside.settle(captured)
        return old

    monkeypatch.setattr(reconciliation, "SKEW", timedelta(0))
    monkeypatch.setitem(client.BANK_CALLS, "movements", ask)
    assert not sync.sync(captured.payment_id)
    captured.refresh_from_db()
    assert captured.status == "refunded" and Movement.objects.count() == 2
    assert not Discrepancy.objects.exists()


def test_books_are_recorded_completely_before_they_are_checked(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Staff refund £60, which fails, and then refund £60 again. The service never counts £120."""
    monkeypatch.setattr(outside, "hear", lambda: None)
    assert captured.payment_id is not None
    for _ in range(2):
        reference = outside.refund_outside(captured.payment, 6000)
        bank_settling.settle_due()
        if not Call.objects.filter(reason=bank_settling.CARD_CLOSED).exists():
            bank_settling.end_refund(
                payment=captured.payment_id, reference=reference, fails_with=bank_settling.CARD_CLOSED
            )
    refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
    books = client.call_bank("movements", payment=captured.payment_id)
    newest_first = replace(books, refunds=[*books.refunds][::-1])
    monkeypatch.setitem(client.BANK_CALLS, "movements", lambda **_: newest_first)
    outside.ask_about(captured.payment)
    assert mates.borne(captured) == {"4242": 3000}
    assert sorted(Movement.objects.values_list("amount", flat=True)) == [-6000, -6000, 6000, 9000]
    kinds = set(Discrepancy.objects.values_list("kind", flat=True))
    assert kinds == {"outside_refund_failed"}


def test_an_unreachable_provider_leaves_the_inquiry_due(captured: Checkout) -> None:
    assert captured.payment_id is not None
    break_down("movements", "down")
    with pytest.raises(ProviderUnreachable):
        sync.sync(captured.payment_id)
    break_down("movements", "down")
    inquiries.open_inquiries([captured.payment_id])
    tasks.answer_inquiries()
    assert Inquiry.objects.exists()


def test_books_of_a_disputed_payment_are_read_again_after_an_hour(captured: Checkout) -> None:
    found = outside.dispute(captured.payment)
    due_at = Inquiry.objects.get().due_at
    assert timedelta(minutes=59) < due_at - clock.now() <= timedelta(hours=1)
    outside.decide(found, is_won=True)
    assert not Inquiry.objects.exists()


def test_a_change_in_the_books_counts_as_a_change_of_the_order(captured: Checkout) -> None:
    before = Checkout.objects.values_list("updated_at", flat=True).get()
    outside.ask_about(captured.payment)
    assert Checkout.objects.values_list("updated_at", flat=True).get() == before
    outside.refund_outside(captured.payment, 1000)
    assert Checkout.objects.values_list("updated_at", flat=True).get() > before
    mates.pump(captured.pk)
