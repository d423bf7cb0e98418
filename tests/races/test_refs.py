"""If one refund reference is used for two checkouts at the same moment, one refund starts and one is refused."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from checkout import captures, refunds
from checkout.models import Checkout, Refund
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE


@pytest.mark.rule("refund.ref_conflict")
@pytest.mark.django_db(transaction=True)
def test_a_reference_used_twice_at_once_is_one_refund_and_a_conflict(
    acme: Merchant, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [captures.capture(acme, pay(factories.checkout(acme)).pk, cause=CAUSE) for _ in range(2)]
    barrier, check = threading.Barrier(2), refunds._check_refundable

    def meet(checkout: Checkout) -> None:
        check(checkout)
        barrier.wait(5)

    def refund(checkout: Checkout) -> str:
        try:
            refunds.accept(acme, checkout.pk, ref="same", cause=CAUSE)
            return "accepted"
        except refunds.RefundRefConflict:
            return "conflict"
        finally:
            connections.close_all()

    monkeypatch.setattr(refunds, "_check_refundable", meet)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(refund, both)) == ["accepted", "conflict"]
    assert Refund.objects.count() == 1
    assert sorted(Checkout.objects.values_list("status", flat=True)) == ["captured", "refunding"]
