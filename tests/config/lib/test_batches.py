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


def test_repeat_until_no_rows_remain() -> None:
    left = [3, 3, 1]
    assert batches.repeat(lambda rows: left.pop(0), rows=3) == 7 and left == []


def test_stop_after_the_maximum_and_leave_the_rest_for_the_next_run() -> None:
    left = [3, 3, 3, 3]
    assert batches.repeat(lambda rows: left.pop(0), rows=3) == 9 and left == [3]


def test_process_each_row_once() -> None:
    Fault.objects.bulk_create(
        Fault(verb="refund", mode="down", times=number) for number in (1, 1, 1, 1, 1, 2)
    )
    old = Fault.objects.filter(times=1)
    assert batches.update(old, times=3) == 5 and not old.exists()
    assert batches.delete(Fault.objects.filter(times=3)) == 5
    assert Fault.objects.get().times == 2


def test_yield_each_initial_row_despite_concurrent_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ROWS", 2)
    made = MerchantFactory.create_batch(5, name="Old")
    seen = []
    for merchant in batches.iterate(Merchant.objects.filter(name="Old")):
        Merchant.objects.filter(pk=merchant.pk).update(name="Seen")
        seen.append(merchant)
    assert {merchant.pk for merchant in seen} == {merchant.pk for merchant in made} and len(seen) == 5
