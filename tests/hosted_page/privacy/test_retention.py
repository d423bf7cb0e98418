"""Retention: people are erased 25 months after their last order.

The last 4 digits and the fingerprint of their cards are erased thirteen months after the last payment.
"""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test import override_settings

from checkout.models import Checkout, Customer, PaymentRequest
from config.lib import batches, clock
from hosted_page.models import OptIn
from hosted_page.privacy import data_subjects, erasure, retention
from payments.models import Merchant, Payment
from tests import factories, mates
from tests.factories import CustomerFactory
from tests.hosted_page.privacy.persons import PHONE, tick

pytestmark = [pytest.mark.django_db, pytest.mark.rule("privacy.retention")]
OLD, DISPUTED = timedelta(days=761), timedelta(days=401)


def let_pass(time: timedelta) -> None:
    """Move the times of all rows back by `time`. The ids still contain the real time of creation.

    The triggers are disabled during the update, because they forbid changes to opt-ins.
    """
    with connection.cursor() as cursor:
        ago = f"interval '{time.total_seconds()} seconds'"
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in (
            "checkout_customer",
            "checkout_checkout",
            "checkout_paymentrequest",
            "payments_payment",
        ):
            cursor.execute(f"UPDATE {table} SET created_at = created_at - {ago}")
        cursor.execute(f"UPDATE hosted_page_optin SET opted_in_at = opted_in_at - {ago}")
        cursor.execute("SET LOCAL session_replication_role = origin")


@pytest.fixture
def _ids_tell_no_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a query for old ids find all rows. The test's ids are new, so it would otherwise find no row."""
    monkeypatch.setattr(clock, "first_id", lambda at: UUID(int=2**128 - 1))


@pytest.mark.usefixtures("_ids_tell_no_age")
class TestPeople:
    def test_are_erased_a_set_time_after_their_last_order(self, order: Checkout, lea: Customer) -> None:
        let_pass(OLD - timedelta(days=2))
        assert retention.erase_old() == 0
        let_pass(timedelta(days=2))
        assert retention.erase_old() == 1
        lea.refresh_from_db()
        assert lea.phone is None and OptIn.objects.get().email == ""
        assert Payment.objects.get().card_last4 == "", "its disputes' time is over too"
        assert retention.erase_old() == 0

    @pytest.mark.parametrize("later", ["order", "share"])
    def test_are_kept_while_they_have_newer_orders(
        self,
        order: Checkout,
        lea: Customer,
        acme: Merchant,
        later: str,
    ) -> None:
        let_pass(OLD)
        again = factories.checkout(acme)
        if later == "order":
            Checkout.objects.filter(pk=again.pk).update(lead=lea)
        else:
            Checkout.objects.filter(pk=again.pk).update(lead=CustomerFactory.create())
            mates.split(again, 2000)
            PaymentRequest.objects.update(mate=lea)
        assert retention.erase_old() == 0
        lea.refresh_from_db()
        assert lea.phone == PHONE

    def test_are_kept_while_an_order_is_open(self, unpaid: Checkout, lea: Customer) -> None:
        Checkout.objects.filter(pk=unpaid.pk).update(lead=lea)
        let_pass(OLD)
        assert retention.erase_old() == 0

    def test_who_are_kept_do_not_delay_other_erasures(
        self, unpaid: Checkout, lea: Customer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(batches, "ROWS", 1)
        Checkout.objects.filter(pk=unpaid.pk).update(lead=lea)
        CustomerFactory.create_batch(2)
        let_pass(OLD)
        assert retention.erase_old() == 2
        assert list(Customer.objects.filter(erased_at=None)) == [lea]

    def test_are_erased_on_the_next_night_if_the_run_is_out_of_time(
        self, order: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        let_pass(OLD)
        with monkeypatch.context() as short:
            short.setattr(retention, "SECONDS", 0.0)
            assert retention.erase_old() == 0
        assert retention.erase_old() == 1

    def test_known_only_by_email_are_erased_too(self, order: Checkout) -> None:
        tick(order, None, "amy@example.com")
        let_pass(OLD)
        assert retention.erase_old() == 2
        assert not OptIn.objects.exclude(email_digest="").exists()

    def test_asked_by_a_lead_are_erased_with_the_order(self, order: Checkout, acme: Merchant) -> None:
        asked = factories.checkout(acme)
        mates.split(asked, 2000)
        PaymentRequest.objects.update(name="Finn", phone="+447700900555")
        let_pass(OLD)
        retention.erase_old()
        share = PaymentRequest.objects.get()
        assert (share.name, share.phone) == ("", "")

    def test_are_kept_for_a_configurable_time(self, order: Checkout) -> None:
        let_pass(timedelta(days=31))
        with override_settings(PERSON_RETENTION=timedelta(days=30)):
            assert retention.erase_old() == 1


@pytest.mark.rule("privacy.cards")
class TestCardsOfErasedPersons:
    def test_are_kept_while_a_dispute_is_possible_and_then_deleted(
        self,
        order: Checkout,
        at: Callable[[str], Checkout],
    ) -> None:
        erasure.erase(data_subjects.find_person(phone=PHONE))
        other = CustomerFactory.create()
        untouched = factories.checkout(order.merchant)
        Payment.objects.create(
            merchant=order.merchant,
            subject=untouched.pk,
            checkout_uuid=untouched.pk,
            amount=1,
            currency="GBP",
            card_last4="1111",
        )
        Checkout.objects.filter(pk=untouched.pk).update(lead=other)
        retention.erase_old()
        assert Payment.objects.get(subject=order.pk).card_last4 == "4242"
        let_pass(DISPUTED)
        retention.erase_old()
        card = Payment.objects.get(subject=order.pk)
        assert (card.card_last4, card.card_fingerprint, card.card_brand) == ("", "", "Visa")
        assert Payment.objects.get(subject=untouched.pk).card_last4 == "1111"

    def test_that_are_kept_do_not_delay_other_deletions(
        self, order: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(batches, "ROWS", 1)
        erasure.erase(data_subjects.find_person(phone=PHONE))
        Customer.objects.create(erased_at=clock.now())
        retention.erase_old()
        assert [erased.cards_erased_at is None for erased in Customer.objects.order_by("pk")] == [True, False]
