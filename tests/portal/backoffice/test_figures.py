"""Figures from the database: the ages of the last reconciliation and back-up, and holds at risk.

A hold is at risk if it ends soon and its merchant's endpoint has not accepted the event.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout import captures
from checkout.models import Checkout
from config.lib import clock
from payments.inquiring import reconciliation
from payments.models import LastBackup, Merchant, Operation, Payment, Reconciled
from portal.backoffice import figures
from tests import factories, plans
from tests.checkout.proof.tampering import copy, tamper
from tests.factories import CAUSE
from tests.webhooks import story
from webhooks import subscriptions
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db
OLD = "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid"
CAPTURED = {"status": "'captured'", "captured_at": "now()"}
MANY = "WITH numbers AS (SELECT generate_series(100, 3099) AS n) "


@pytest.fixture
def subscribed_hold(acme: Merchant, pay: Callable[..., Checkout]) -> Checkout:
    """Return a hold that ends in 20 seconds. Its merchant has an endpoint."""
    factories.subscribe(acme, url=story.OLD_URL)
    held = pay(factories.checkout(acme))
    end_in(held, 20)
    return held


def end_in(held: Checkout, seconds: float) -> None:
    Checkout.objects.filter(pk=held.pk).update(capture_before=clock.now() + timedelta(seconds=seconds))


def figure(wanted: str) -> float:
    cache.clear()
    return next(number for name, _, number in figures.read_figures() if name == wanted)


def undelivered_holds() -> float:
    return figure("checkout_holds_unheard")


def answer(*statuses: int) -> None:
    """Make one delivery attempt for each status, and let the endpoint respond with this status."""
    for status in statuses:
        Delivery.objects.filter(status="pending").update(next_attempt_at=clock.now())
        story.record(story.claim_one(), status)


@pytest.mark.rule("environment.metrics", "money.reconciled")
class TestTheReconciliation:
    def age(self) -> float:
        return figure("checkout_reconciled_age_seconds")

    def test_is_as_old_as_the_last_complete_run(self, held: Checkout) -> None:
        Reconciled.objects.create(until=clock.now() - timedelta(hours=27))
        assert 27 * 3600 <= self.age() < 27 * 3600 + 60
        reconciliation.run()
        assert self.age() < 60

    def test_that_never_ran_is_as_old_as_our_first_payment(self, held: Checkout) -> None:
        Payment.objects.update(created_at=clock.now() - timedelta(days=3))
        assert 3 * 86_400 <= self.age() < 3 * 86_400 + 60

    def test_is_up_to_date_if_there_are_no_payments(self, acme: Merchant) -> None:
        assert self.age() == 0


@pytest.mark.rule("environment.backup")
class TestTheBackup:
    def age(self) -> float:
        return figure("checkout_backup_age_seconds")

    def test_is_as_old_as_its_record(self, held: Checkout) -> None:
        LastBackup.objects.create(made_at=clock.now() - timedelta(hours=27))
        assert 27 * 3600 <= self.age() < 27 * 3600 + 60

    def test_that_was_never_made_is_as_old_as_our_first_payment(self, held: Checkout) -> None:
        Payment.objects.update(created_at=clock.now() - timedelta(days=3))
        assert 3 * 86_400 <= self.age() < 3 * 86_400 + 60

    def test_is_up_to_date_if_there_are_no_payments(self, acme: Merchant) -> None:
        assert self.age() == 0


@pytest.mark.rule("environment.metrics")
class TestUnresolvedOperations:
    def test_are_as_old_as_their_first_key(self, unclear: Operation) -> None:
        """A new key every few seconds must not keep the alert about unresolved operations from firing."""
        Operation.objects.filter(pk=unclear.pk).update(created_at=clock.now() - timedelta(minutes=20))
        unclear.refresh_from_db()
        factories.replace_key(unclear)
        cache.clear()
        read = {(name, label): number for name, label, number in figures.read_figures()}
        assert read["checkout_unresolved_operations", "capture"] == 1
        assert 1200 <= read["checkout_unresolved_oldest_seconds", "capture"] < 1260


@pytest.mark.rule("environment.metrics")
class TestUndeliveredHolds:
    @pytest.mark.parametrize("answers", [(), (500,), (500, 500, 500, 500), (400,)])
    def test_count_holds_that_an_endpoint_has_not_accepted(
        self, subscribed_hold: Checkout, answers: tuple[int, ...]
    ) -> None:
        answer(*answers)
        assert undelivered_holds() == 1

    @pytest.mark.parametrize("answers", [(200,), (500, 200)])
    def test_leave_out_holds_that_the_endpoint_accepted(
        self, subscribed_hold: Checkout, answers: tuple[int, ...]
    ) -> None:
        answer(*answers)
        assert undelivered_holds() == 0

    @pytest.mark.parametrize("seconds", [-1, 40])
    def test_leave_out_holds_that_ended_or_still_have_time(
        self, subscribed_hold: Checkout, seconds: float
    ) -> None:
        answer(400)
        end_in(subscribed_hold, seconds)
        assert undelivered_holds() == 0

    def test_leave_out_merchants_without_a_subscription(self, subscribed_hold: Checkout) -> None:
        subscriptions.end(subscribed_hold.merchant)
        assert Delivery.objects.get().status == "parked"
        assert undelivered_holds() == 0

    def test_leave_out_captured_holds(self, subscribed_hold: Checkout) -> None:
        answer(400)
        captures.capture(subscribed_hold.merchant, subscribed_hold.pk, cause=CAUSE)
        assert undelivered_holds() == 0


class TestPlan:
    def test_reads_no_table_from_end_to_end(self, subscribed_hold: Checkout) -> None:
        """With 3,000 other orders in the database, the queries do not read any table or index completely."""
        answer(400)
        mine = "original.checkout_uuid = %(checkout)s"
        of_hold = "original.event_id IN (SELECT id FROM webhooks_event WHERE checkout_uuid = %(checkout)s)"
        for sql in (
            copy("webhooks_delivery", of_hold, id=OLD, event_id=OLD),
            copy("webhooks_event", mine, id=OLD, checkout_uuid=OLD),
            copy("payments_payment", mine, id=OLD, subject=OLD, checkout_uuid=OLD),
            copy("checkout_checkout", "original.id = %(checkout)s", id=OLD, payment_id=OLD, **CAPTURED),
        ):
            tamper(subscribed_hold, MANY + sql)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        with CaptureQueriesContext(connection) as queries:
            assert undelivered_holds() == 1
        read = {
            table
            for query in queries
            if '"webhooks_event"' in query["sql"] or '"webhooks_delivery"."event_id"' in query["sql"]
            for table in plans.scans(query["sql"])
        }
        # Near midnight, the test's rows can be in the partitions of two days.
        days = [f"_{clock.now() + timedelta(days=ahead):%Y%m%d}" for ahead in (-1, 0, 1)]
        few = (*days, "_pending", "_subscription")  # PostgreSQL skips the partitions of other days
        assert {table for table in read if not table.endswith(few)} == set()
