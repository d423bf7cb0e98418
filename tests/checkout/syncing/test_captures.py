"""A capture in the provider's books is recorded if the merchant requested it. Otherwise, it is reported."""

from dataclasses import replace
from datetime import timedelta

import pytest

from checkout import captures
from checkout.models import Checkout
from checkout.syncing import sync
from payments import provider
from payments.inquiring import reconciliation
from payments.models import Discrepancy, Movement, Operation, Payment
from payments.provider import Books
from payments.providers.sandbox import client, fault_injection
from tests.factories import CAUSE

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted", "proven"),
    pytest.mark.rule("sync.capture"),
]


def kinds() -> list[str]:
    return list(Discrepancy.objects.filter(closed_at=None).values_list("kind", flat=True))


def replace_books(monkeypatch: pytest.MonkeyPatch, payment: Payment, **changes: object) -> None:
    """Make the provider return different books for a payment."""
    books = provider.current_provider().movements(payment)
    changed_books = replace(books, **changes)  # type: ignore[arg-type]  # `changes` has names of fields of Books
    monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: changed_books)


def paid(held: Checkout) -> Payment:
    assert held.payment_id is not None
    return Payment.objects.get(pk=held.payment_id)


def test_a_capture_with_a_lost_response_is_recorded_from_the_books(held: Checkout) -> None:
    fault_injection.set_fault(verb="capture", mode="done_then_hang", times=1)
    fault_injection.set_fault(verb="look_up", mode="down", times=5)
    with pytest.raises(captures.OutcomeUnknown):
        captures.capture(held.merchant, held.pk, cause=CAUSE)
    assert Operation.objects.get(kind="capture").ended_at is None
    assert sync.sync(paid(held).pk)
    assert Operation.objects.get(kind="capture").state == "succeeded"
    held.refresh_from_db()
    assert held.status == "captured"
    assert not sync.sync(paid(held).pk), "the same fact is known"


def test_a_dashboard_capture_is_recorded_only_after_the_merchants_capture(held: Checkout) -> None:
    client.call_bank("act_in_dashboard", kind="capture", payment=paid(held).pk)
    assert not sync.sync(paid(held).pk)
    assert (kinds(), Movement.objects.count()) == (["outside_capture"], 0)
    assert captures.capture(held.merchant, held.pk, cause=CAUSE).status == "captured"
    assert Movement.objects.get().amount == 9000


def test_a_capture_of_another_amount_is_reported(captured: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    books = provider.current_provider().movements(paid(captured))
    assert books.capture is not None
    replace_books(monkeypatch, paid(captured), capture=replace(books.capture, amount=4000))
    assert not sync.sync(paid(captured).pk)
    assert (kinds(), Movement.objects.get().amount) == (["captured_another_amount"], 9000)


def test_a_capture_missing_from_the_books_is_reported_and_kept(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: Books())
    sync.sync(paid(captured).pk)
    assert kinds() == [], "a list may lag behind"
    monkeypatch.setattr(reconciliation, "SKEW", timedelta(0))
    sync.sync(paid(captured).pk)
    assert (kinds(), Movement.objects.count()) == (["missing_there"], 1)
