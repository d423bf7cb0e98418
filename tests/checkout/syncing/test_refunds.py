"""Refunds in the provider's books, including those by staff, are recorded once and compared at each sync."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from pytest_django.fixtures import Settings

from checkout import captures
from checkout.models import Checkout, Refund
from checkout.syncing import refunds, sync
from config.lib import clock
from payments import provider
from payments.inquiring import reconciliation
from payments.models import Discrepancy, Movement, Operation, Payment
from payments.provider import Books, Outcome, RefundRecord, Verdict
from payments.providers.sandbox import client
from tests import factories, mates, outside
from tests.factories import CAUSE

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("posted", "proven"),
    pytest.mark.rule("sync.outside"),
]


def kinds() -> list[str]:
    return list(Discrepancy.objects.filter(closed_at=None).values_list("kind", flat=True))


def books_of(order: Checkout) -> Books:
    assert order.payment_id is not None
    return provider.current_provider().movements(Payment.objects.get(pk=order.payment_id))


def replace_books(monkeypatch: pytest.MonkeyPatch, books: Books) -> None:
    monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: books)


def read(order: Checkout) -> bool:
    assert order.payment_id is not None
    return sync.sync(order.payment_id)


@pytest.mark.rule("refund.returned")
@pytest.mark.parametrize("is_pump_first", [True, False])
def test_our_refund_that_settles_and_returns_between_two_reads_has_failed(
    captured: Checkout, is_pump_first: bool
) -> None:
    mates.give_back(captured)
    mates.pump(captured.pk)
    refund = Operation.objects.get(kind="refund")
    for fails_with in ("", "card_closed"):
        client.call_bank(
            "end_refund", payment=captured.payment_id, reference=str(refund.pk), fails_with=fails_with
        )
    looks: list[Callable[[], object]] = [lambda: mates.pump(captured.pk), lambda: read(captured)]
    for look in looks if is_pump_first else reversed(looks):
        look()
        assert outside.end_of(refund) == ("captured", "failed", "failed")
    outside.hear()
    assert not read(captured)
    assert Movement.objects.exclude(kind="captured").count() == 0 and kinds() == []


@pytest.mark.parametrize("amount", [1, 4000])
def test_a_dashboard_refund_is_recorded_while_it_is_pending(captured: Checkout, amount: int) -> None:
    reference = outside.refund_outside(captured.payment, amount, is_pending=True)
    theirs = Operation.objects.get(purpose="outside")
    assert (theirs.state, theirs.amount, theirs.next_attempt_at) == ("pending", amount, None)
    assert theirs.attempts == 1
    assert Movement.objects.filter(kind="refunded").count() == 0
    client.call_bank("end_refund", payment=captured.payment_id, reference=reference)
    outside.hear()
    assert Movement.objects.get(kind="refunded").amount == -amount
    assert not read(captured)


def test_each_change_of_a_dashboard_refund_counts_as_a_change(captured: Checkout) -> None:
    reference = client.call_bank(
        "act_in_dashboard", kind="refund", payment=captured.payment_id, amount=4000, is_pending=True
    )
    assert [read(captured), read(captured)] == [True, False]
    client.call_bank("end_refund", payment=captured.payment_id, reference=reference)
    assert [read(captured), read(captured)] == [True, False]
    assert kinds() == []


def test_a_dashboard_refund_that_fails_after_it_has_settled_is_reported_once(captured: Checkout) -> None:
    reference = outside.refund_outside(captured.payment, 4000)
    client.call_bank("end_refund", payment=captured.payment_id, reference=reference, fails_with="card_closed")
    assert [read(captured), read(captured)] == [True, False]
    assert kinds() == ["outside_refund_failed"]
    assert Movement.objects.get(kind="refund_returned").amount == 4000


@pytest.mark.rule("refund.returned")
def test_our_returned_refund_has_the_providers_reason(refunded: Checkout) -> None:
    outside.come_back()
    assert outside.returned(refunded).reason == "card_account_closed"
    assert kinds() == ["refund_returned"]
    assert not read(refunded)


@pytest.mark.rule("doubt.refusal")
def test_our_part_of_a_refund_that_succeeds_after_a_recorded_refusal_is_reported_and_recorded(
    unpaid: Checkout, pay: Callable[..., Checkout], settings: Settings
) -> None:
    (share,) = mates.split(unpaid, 3000)
    order = captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    mates.pay(share)
    assert mates.settled(share) == "reimbursed"
    settings.SANDBOX_REFUND_SECONDS = 3600
    mates.give_back(order)
    mates.pump(order.pk)
    parts = Operation.objects.filter(purpose="refund_part").select_related("payment")
    theirs, part = parts.get(payment__subject=share.pk), parts.get(payment__subject=order.pk)
    end_refund(theirs)
    assert sync.sync(theirs.payment_id)
    factories.record(part, Outcome(Verdict.FAILED, reason="refused"))
    assert not read(order)
    part.refresh_from_db()
    assert (part.state, sorted(kinds())) == ("failed", ["refund_after_refusal", "refund_part_failed"])
    end_refund(part)
    assert [read(order), read(order)] == [True, False]
    assert outside.end_of(part) == ("refunded", "succeeded", "settled")


@pytest.fixture
def refused_part(captured: Checkout, settings: Settings) -> Operation:
    """Return the only part of a refund. The part was recorded as refused, although the bank had accepted it."""
    settings.SANDBOX_REFUND_SECONDS = 3600
    mates.give_back(captured)
    mates.pump(captured.pk)
    part = Operation.objects.select_related("payment").get(purpose="refund_part")
    factories.record(part, Outcome(Verdict.FAILED, reason="refused"))
    return part


@pytest.mark.rule("refund.failed")
def test_a_failed_refund_continues_if_a_part_of_it_succeeds_after_all(
    captured: Checkout, refused_part: Operation
) -> None:
    assert outside.end_of(refused_part) == ("captured", "failed", "failed")
    end_refund(refused_part)
    assert [read(captured), read(captured)] == [True, False]
    assert outside.end_of(refused_part) == ("refunded", "succeeded", "settled")
    assert Refund.objects.get().failure_reason is None
    assert kinds() == ["refund_after_refusal"]


@pytest.mark.parametrize("is_read_between", [True, False])
def test_a_late_success_that_is_returned_ends_with_a_failed_refund(
    captured: Checkout, refused_part: Operation, is_read_between: bool
) -> None:
    end_refund(refused_part)
    if is_read_between:
        assert read(captured)
    client.call_bank(
        "end_refund",
        payment=refused_part.payment_id,
        reference=str(refused_part.pk),
        fails_with="card_closed",
    )
    assert read(captured) == is_read_between
    status = "refunded" if is_read_between else "captured"
    assert outside.end_of(refused_part)[::2] == (status, "failed")


def end_refund(part: Operation) -> None:
    client.call_bank("end_refund", payment=part.payment_id, reference=str(part.pk))


def test_a_refund_that_ended_when_its_books_were_requested_is_not_changed_by_them(
    captured: Checkout,
) -> None:
    outside.refund_outside(captured.payment, 4000)
    theirs = Operation.objects.get(purpose="outside")
    assert theirs.ended_at is not None
    (first,) = books_of(captured).refunds
    order = Checkout.objects.locked(captured.pk)
    reading = sync.Reading(order, Payment.objects.get(), theirs.ended_at, clock.now())
    assert not refunds.sync_refund(reading, replace(first, verdict=Verdict.FAILED))
    assert not Movement.objects.filter(kind="refund_returned").exists()


def test_a_dashboard_refund_that_never_settles_leaves_no_movement(captured: Checkout) -> None:
    reference = outside.refund_outside(captured.payment, 4000, is_pending=True)
    client.call_bank("end_refund", payment=captured.payment_id, reference=reference, fails_with="card_closed")
    outside.hear()
    assert Operation.objects.get(purpose="outside").state == "failed"
    assert Movement.objects.filter(kind="refunded").count() == 0


@pytest.mark.parametrize("facts", [{"verdict": Verdict.FAILED}, {"amount": 0}])
def test_a_dashboard_refund_that_moved_no_money_is_not_recorded(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any]
) -> None:
    replace_books(monkeypatch, replace(books_of(captured), refunds=[replace(dashboard_refund(), **facts)]))
    assert not read(captured)
    assert not Operation.objects.filter(kind="refund").exists()


def test_a_dashboard_refund_of_a_payment_without_a_recorded_capture_is_not_recorded(
    held: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_books(monkeypatch, replace(books_of(held), refunds=[dashboard_refund()]))
    assert not read(held)
    assert not Operation.objects.filter(kind="refund").exists()


def test_a_dashboard_refund_with_our_copied_metadata_counts_as_made_by_staff(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refund could be ours only if the database had been restored and had lost the refund's row."""
    copied = replace(dashboard_refund(), operation=uuid4(), refund=uuid4())
    replace_books(monkeypatch, replace(books_of(captured), refunds=[copied]))
    assert read(captured)
    assert Operation.objects.get(kind="refund").purpose == "outside" and not Refund.objects.exists()
    assert kinds() == []


@pytest.mark.parametrize("names_an_operation", [False, True])
def test_a_dashboard_refund_is_not_ours_in_a_restored_database_unless_our_operation_was_lost(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch, names_an_operation: bool
) -> None:
    known = Operation.objects.get(kind="capture").pk
    copied = replace(dashboard_refund(), operation=known if names_an_operation else None, refund=uuid4())
    replace_books(monkeypatch, replace(books_of(captured), refunds=[copied]))
    assert captured.payment_id is not None
    assert sync.sync(captured.payment_id, is_restored=True)
    assert Operation.objects.get(kind="refund").purpose == "outside" and not Refund.objects.exists()


def dashboard_refund() -> RefundRecord:
    return RefundRecord("theirs", 4000, "GBP", Verdict.SUCCEEDED, clock.now())


def test_a_second_refund_that_names_our_operation_is_not_recorded_as_ours(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account's owner can name our operation in any refund.

    The provider can also carry out a call a second time after its key has expired.
    """
    mates.give_back(captured)
    ours = Operation.objects.get(purpose="refund_part")
    Operation.objects.filter(pk=ours.pk).update(amount=5000, state="planned")
    outside.settle(captured)
    (first,) = books_of(captured).refunds
    second = replace(first, reference="another", amount=4000, verdict=Verdict.SUCCEEDED)
    replace_books(monkeypatch, replace(books_of(captured), refunds=[first, second]))
    read(captured)
    assert "succeeded_under_an_old_key" in kinds()
    assert Operation.objects.get(reference="another").purpose == "outside"


def test_a_refund_of_another_amount_is_reported_and_changes_nothing(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.refund_outside(captured.payment, 4000)
    (first,) = books_of(captured).refunds
    replace_books(monkeypatch, replace(books_of(captured), refunds=[replace(first, amount=100)]))
    assert not read(captured)
    assert kinds() == ["refund_of_another_amount"]


def test_a_refund_missing_from_the_books_is_reported(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.refund_outside(captured.payment, 4000)
    replace_books(monkeypatch, replace(books_of(captured), refunds=[]))
    read(captured)
    assert kinds() == [], "a list may lag behind"
    monkeypatch.setattr(reconciliation, "SKEW", timedelta(0))
    read(captured)
    report = Discrepancy.objects.get()
    assert (report.kind, report.facts["amount"]) == ("missing_there", 4000)


def test_an_old_refund_that_is_in_the_books_is_not_reported(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.refund_outside(captured.payment, 4000)
    monkeypatch.setattr(reconciliation, "SKEW", timedelta(0))
    read(captured)
    assert kinds() == []


def test_a_refund_missing_from_older_books_is_not_reported(captured: Checkout) -> None:
    outside.refund_outside(captured.payment, 4000)
    Payment.objects.update(synced_at="2100-01-01T00:00Z")
    assert not read(captured)
