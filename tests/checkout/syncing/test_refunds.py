"""Refunds in the provider's books are recorded once and compared at each sync, also those made by others."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.models import Checkout
from checkout.syncing import sync
from payments import provider
from payments.inquiring import reconciliation
from payments.models import Discrepancy, Movement, Operation, Payment
from payments.provider import Books, Verdict
from payments.providers.sandbox import client
from tests import mates, outside

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


def say(monkeypatch: pytest.MonkeyPatch, books: Books) -> None:
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


def test_a_dashboard_refund_is_recorded_while_it_is_pending(captured: Checkout) -> None:
    reference = outside.refund_outside(captured.payment, 4000, is_pending=True)
    theirs = Operation.objects.get(purpose="outside")
    assert (theirs.state, theirs.amount, theirs.next_attempt_at) == ("pending", 4000, None)
    assert Movement.objects.filter(kind="refunded").count() == 0
    client.call_bank("end_refund", payment=captured.payment_id, reference=reference)
    outside.hear()
    assert Movement.objects.get(kind="refunded").amount == -4000
    assert not read(captured)


def test_a_dashboard_refund_that_never_settles_leaves_no_movement(captured: Checkout) -> None:
    reference = outside.refund_outside(captured.payment, 4000, is_pending=True)
    client.call_bank("end_refund", payment=captured.payment_id, reference=reference, fails_with="card_closed")
    outside.hear()
    assert Operation.objects.get(purpose="outside").state == "failed"
    assert Movement.objects.filter(kind="refunded").count() == 0


def test_a_second_refund_that_names_our_operation_is_not_recorded_as_ours(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second refund that names our operation is not recorded as ours.

    Either the account's owner has named our operation in a refund, or the provider has carried out a call
    again after its key had expired.
    """
    mates.give_back(captured)
    ours = Operation.objects.get(purpose="refund_part")
    Operation.objects.filter(pk=ours.pk).update(amount=5000, state="planned")
    outside.settle(captured)
    (told,) = books_of(captured).refunds
    second = replace(told, reference="another", amount=4000, verdict=Verdict.SUCCEEDED)
    say(monkeypatch, replace(books_of(captured), refunds=[told, second]))
    read(captured)
    assert "succeeded_under_an_old_key" in kinds()
    assert Operation.objects.get(reference="another").purpose == "outside"


def test_a_refund_of_another_amount_is_reported_and_changes_nothing(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.refund_outside(captured.payment, 4000)
    (told,) = books_of(captured).refunds
    say(monkeypatch, replace(books_of(captured), refunds=[replace(told, amount=100)]))
    assert not read(captured)
    assert kinds() == ["refund_of_another_amount"]


def test_a_refund_missing_from_the_books_is_reported(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.refund_outside(captured.payment, 4000)
    say(monkeypatch, replace(books_of(captured), refunds=[]))
    read(captured)
    assert kinds() == [], "a list may lag behind"
    monkeypatch.setattr(reconciliation, "SKEW", timedelta(0))
    read(captured)
    assert kinds() == ["missing_there"]


def test_a_refund_missing_from_older_books_is_not_reported(captured: Checkout) -> None:
    outside.refund_outside(captured.payment, 4000)
    Payment.objects.update(synced_at="2100-01-01T00:00Z")
    assert not read(captured)
