"""A hold at the provider that differs from our records is reported. An unwanted hold is also released."""

import pytest

from checkout import cancellations
from checkout.models import Checkout
from checkout.syncing import sync
from payments import provider
from payments.models import Discrepancy, Operation, Payment
from payments.provider import Books
from payments.providers.sandbox import client
from tests import mates
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sync.holds")]


def kinds() -> list[str]:
    return list(Discrepancy.objects.values_list("kind", flat=True))


def read(order: Checkout) -> None:
    assert order.payment_id is not None
    sync.sync(order.payment_id)


def test_a_hold_on_a_declined_payment_is_released_and_reported(
    held: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    Payment.objects.update(status="declined")
    read(held)
    void = Operation.objects.get(kind="void")
    assert (void.state, kinds()) == ("planned", ["held_after_refusal"])


def test_a_released_hold_that_is_still_in_the_books_is_reported(
    held: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
    mates.pump(held.pk)
    monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: Books(is_held=True))
    read(held)
    assert kinds() == ["hold_not_released"]


def test_a_hold_that_staff_released_is_reported(held: Checkout) -> None:
    client.call_bank("act_in_dashboard", kind="void", payment=held.payment_id)
    read(held)
    assert kinds() == ["outside_void"]
