"""An order's customer data is encrypted, and is deleted a day after the order has ended."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from checkout import tasks
from checkout.customers import prefills
from checkout.models import Checkout, Prefill
from config.lib import clock
from payments.models import Merchant
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.rule("prefill.kept")]
LEA = {"phone": "+447700900123", "name": "Lea Fontaine", "locale": "fr"}


@pytest.fixture
def order(acme: Merchant) -> Checkout:
    return factories.checkout(acme, customer=LEA)


def test_number_and_name_are_encrypted(order: Checkout) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM checkout_prefill t")
        (row,) = cursor.fetchone()
    assert "7700900123" not in row and "Lea" not in row and "Fontaine" not in row


@pytest.mark.parametrize("end", ["captured", "lapsed", "voided", "expired", "refunded"])
def test_a_prefill_is_deleted_a_day_after_the_order_ends(
    end: str, at: Callable[[str], Checkout], monkeypatch: pytest.MonkeyPatch, unpaid: Checkout
) -> None:
    prefills.save_prefill(unpaid, LEA)
    at(end)
    real = clock.now
    for passed, is_there in ((timedelta(hours=23, minutes=59), True), (timedelta(days=1, minutes=1), False)):
        monkeypatch.setattr(clock, "now", lambda passed=passed: real() + passed)
        tasks.delete_old_prefills()
        assert Prefill.objects.exists() is is_there
    assert Checkout.objects.filter(pk=unpaid.pk).exists()


def test_a_prefill_is_kept_while_the_order_has_not_ended(
    order: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    Checkout.objects.update(payable_until=F("payable_until") + timedelta(days=2))
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + timedelta(days=40))
    tasks.delete_old_prefills()
    assert Prefill.objects.count() == 1


def test_is_read_by_the_page_and_no_other_code(order: Checkout) -> None:
    (shown,) = prefills.with_locale(Checkout.objects.all())
    assert prefills.locale_of(shown) == "fr"
    found = prefills.prefill_of(shown)
    assert found is not None and found.phone == LEA["phone"]
    assert prefills.prefill_of(order) is None
