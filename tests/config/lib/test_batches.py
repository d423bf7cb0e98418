"""Changes to many rows are made in small transactions."""

import pytest

from config.lib import batches
from payments.models import Merchant
from payments.providers.sandbox.models import Fault
from tests.factories import MerchantFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCHES", 3)


def test_go_on_until_nothing_is_left() -> None:
    left = [3, 3, 1]
    assert batches.repeat(lambda rows: left.pop(0), rows=3) == 7 and left == []


def test_end_after_so_many_and_leave_the_rest_for_the_next_run() -> None:
    left = [3, 3, 3, 3]
    assert batches.repeat(lambda rows: left.pop(0), rows=3) == 9 and left == [3]


def test_treat_each_row_once() -> None:
    Fault.objects.bulk_create(
        Fault(verb="refund", mode="down", times=number) for number in (1, 1, 1, 1, 1, 2)
    )
    old = Fault.objects.filter(times=1)
    assert batches.update(old, times=3) == 5 and not old.exists()
    assert batches.delete(Fault.objects.filter(times=3)) == 5
    assert Fault.objects.get().times == 2


def test_yield_each_row_that_was_there_whatever_is_written_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ROWS", 2)
    made = MerchantFactory.create_batch(5, name="Old")
    seen = []
    for merchant in batches.iterate(Merchant.objects.filter(name="Old")):
        Merchant.objects.filter(pk=merchant.pk).update(name="Seen")
        seen.append(merchant)
    assert {merchant.pk for merchant in seen} == {merchant.pk for merchant in made} and len(seen) == 5
