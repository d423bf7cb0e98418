"""The pump ends many late checkouts in one transaction, and no checkout delays the others."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from checkout import events, expiry, tasks
from checkout.models import Change, Checkout
from checkout.proof import ledger_proof
from checkout.states import Status
from config.lib import clock
from payments import open_operations, operations
from payments.models import Merchant, Operation, Payment
from tests import factories
from tests.factories import CAUSE, make_late
from tests.outages import InDoubt
from webhooks.models import Delivery, Event, Subscription


@pytest.fixture
def holds(acme: Merchant, pay: Callable[..., Checkout]) -> list[Checkout]:
    """Create three held checkouts whose deadlines have passed. The earliest deadline comes first."""
    made = [pay(factories.checkout(acme)) for _ in range(3)]
    for hold in made:
        make_late(hold)
        hold.refresh_from_db()
    return made


def statuses(checkouts: list[Checkout]) -> list[str]:
    for checkout in checkouts:
        checkout.refresh_from_db()
    return [checkout.status for checkout in checkouts]


class TestHolds:
    @pytest.mark.rule("lapse.together", "lapse.void")
    def test_expire_in_one_batch_each_at_its_own_deadline(
        self, acme: Merchant, holds: list[Checkout]
    ) -> None:
        Subscription.objects.create(merchant=acme, url="https://shop.example/hooks", event_types=["*"])
        assert expiry.expire_due(Status.AUTHORIZED, limit=10) == 3
        assert statuses(holds) == ["voided"] * 3
        assert ledger_proof.find_breaches() == []
        for hold in holds:
            told = Event.objects.get(checkout_uuid=hold.pk, type="checkout.voided")
            gone = Event.objects.get(checkout_uuid=hold.pk, type="checkout.authorized")
            change = Change.objects.get(checkout=hold, to="voided")
            assert {told.created_at, gone.superseded_at, change.created_at, hold.voided_at} == {
                hold.capture_before
            }
            assert Delivery.objects.get(event=told).next_attempt_at == hold.capture_before
        tasks.finish_operations()
        assert set(Payment.objects.values_list("status", flat=True)) == {"voided"}

    def test_the_longest_overdue_go_first(self, holds: list[Checkout]) -> None:
        assert expiry.expire_due(Status.AUTHORIZED, limit=1) == 1
        assert statuses(holds) == ["voided", "authorized", "authorized"]

    def test_cost_the_same_number_of_statements_for_two_as_for_one(self, holds: list[Checkout]) -> None:
        with CaptureQueriesContext(connection) as one:
            expiry.expire_due(Status.AUTHORIZED, limit=1)
        with CaptureQueriesContext(connection) as two:
            assert expiry.expire_due(Status.AUTHORIZED, limit=2) == 2
        assert len(two) == len(one)

    def test_are_locked_so_that_other_processes_can_still_refer_to_them(self, holds: list[Checkout]) -> None:
        with CaptureQueriesContext(connection) as sent:
            expiry.expire_due(Status.AUTHORIZED, limit=1)
        locking = [query["sql"] for query in sent if "SKIP LOCKED" in query["sql"]]
        assert len(locking) == 1 and "FOR NO KEY UPDATE" in locking[0]

    def test_with_an_operation_that_started_during_the_lock_stay_held(
        self, holds: list[Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment = Payment.objects.get(subject=holds[1].pk)
        operations.begin(payment, Operation.Kind.CAPTURE, now=clock.now(), cause=CAUSE)
        monkeypatch.setattr(open_operations, "query_open_operation", lambda _: Operation.objects.none())
        assert expiry.expire_due(Status.AUTHORIZED, limit=10) == 2
        assert statuses(holds) == ["voided", "authorized", "voided"]

    @pytest.mark.rule("lapse.together")
    def test_one_that_fails_does_not_delay_the_others(
        self, holds: list[Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tell = events.emit_voided

        def poisoned(checkouts: list[Checkout]) -> None:
            if holds[1] in checkouts:
                raise RuntimeError("poison")
            tell(checkouts)

        monkeypatch.setattr(events, "emit_voided", poisoned)
        tasks.expire_due()
        assert statuses(holds) == ["voided", "authorized", "voided"]
        assert ledger_proof.find_breaches() == []

    @pytest.mark.rule("lapse.together")
    @pytest.mark.django_db(transaction=True)
    def test_that_another_process_has_locked_are_skipped(self, holds: list[Checkout]) -> None:
        other = connection.copy()
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM checkout_checkout WHERE id = %s FOR UPDATE", [holds[1].pk])
            assert expiry.expire_due(Status.AUTHORIZED, limit=10) == 2
        other.close()
        assert statuses(holds) == ["voided", "authorized", "voided"]


class TestOpenTransaction:
    def test_refuses_to_end_checkouts(self, holds: list[Checkout]) -> None:
        """In the caller's transaction, the locks would last until that transaction ends."""
        calls: list[Callable[[], object]] = [
            lambda: expiry.expire_due(Status.AUTHORIZED, limit=10),
            lambda: expiry.expire_one_if_due(holds[0].pk),
        ]
        for expire in calls:
            with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
                expire()
        assert statuses(holds) == ["authorized"] * 3


class TestPassedDeadline:
    def test_ends_a_checkout_once(self, held: Checkout) -> None:
        make_late(held)
        with transaction.atomic():
            checkout = Checkout.objects.locked(held.pk)
            assert expiry.expire_if_due(checkout, clock.now())
            assert not expiry.expire_if_due(checkout, clock.now())

    def test_waits_for_an_open_capture(self, held: Checkout, unclear: Operation) -> None:
        make_late(held)
        with transaction.atomic():
            assert not expiry.expire_if_due(Checkout.objects.locked(held.pk), clock.now())
        assert statuses([held]) == ["authorized"]
        assert expiry.oldest_deadline(Status.AUTHORIZED) is None

    def test_ends_the_checkouts_of_one_merchant(self, holds: list[Checkout], rival: Merchant) -> None:
        other = factories.checkout(rival)
        make_late(other)
        expiry.expire_late_of(holds[0].merchant)
        assert statuses([*holds, other]) == ["voided"] * 3 + ["created"]

    def test_of_the_longest_overdue_checkout_is_reported(self, holds: list[Checkout]) -> None:
        assert expiry.oldest_deadline(Status.AUTHORIZED) == holds[0].capture_before
        assert expiry.oldest_deadline(Status.CREATED) is None

    @pytest.mark.parametrize(("seconds", "is_left_out"), [(50, True), (61, False)])
    def test_is_not_waited_for_while_a_bank_is_asked(
        self, unpaid: Checkout, in_doubt: InDoubt, seconds: int, is_left_out: bool
    ) -> None:
        asked = in_doubt("authorize")
        Operation.objects.filter(pk=asked.pk).update(created_at=clock.now() - timedelta(seconds=seconds))
        assert expiry.exclude_blocked(Checkout.objects.all()).exists() != is_left_out


class TestNextLapse:
    def test_is_that_of_the_first_hold(self, held: Checkout) -> None:
        assert held.capture_before is not None
        remaining = expiry.seconds_to_next_lapse()
        assert remaining is not None
        assert remaining == pytest.approx((held.capture_before - clock.now()).total_seconds(), abs=5)

    @pytest.mark.parametrize(("ago", "is_known"), [(0.2, True), (1.2, False)])
    def test_includes_a_hold_that_has_ended_within_the_last_second(
        self, held: Checkout, ago: float, is_known: bool
    ) -> None:
        ended_at = clock.now() - timedelta(seconds=ago)
        Checkout.objects.filter(pk=held.pk).update(
            authorized_at=ended_at - timedelta(seconds=120), capture_before=ended_at
        )
        assert (expiry.seconds_to_next_lapse() is not None) == is_known

    def test_is_unknown_if_no_card_is_held(self, unpaid: Checkout) -> None:
        assert expiry.seconds_to_next_lapse() is None


class TestUnpaid:
    def test_no_checkout_ends_before_its_deadline(self, unpaid: Checkout) -> None:
        assert expiry.expire_due(Status.CREATED, limit=10) == 0
        assert statuses([unpaid]) == ["created"]

    def test_expire_together(self, acme: Merchant) -> None:
        unpaid = [factories.checkout(acme) for _ in range(2)]
        for checkout in unpaid:
            make_late(checkout)
        tasks.expire_due()
        assert statuses(unpaid) == ["expired", "expired"]
        assert all(checkout.expired_at == checkout.payable_until for checkout in unpaid)
        assert not Event.objects.exists()


class TestLapse:
    @pytest.mark.rule("lapse.void")
    def test_the_pump_voids_a_hold_without_a_capture(self, held: Checkout) -> None:
        make_late(held)
        tasks.expire_due()
        tasks.finish_operations()
        held.refresh_from_db()
        assert (held.status, held.void_reason) == ("voided", "auth_expired")
        assert Payment.objects.get().status == "voided"
        assert Event.objects.get(type="checkout.voided").created_at == held.capture_before

    @pytest.mark.rule("lapse.void")
    def test_the_pump_waits_for_a_hold_that_ends_within_its_tick(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The pump runs once a second. Without the wait, a hold could end as much as a second late."""
        monkeypatch.setattr(tasks, "TICK_SECONDS", 5.0)
        ends_at = clock.now() + timedelta(seconds=0.5)
        Checkout.objects.filter(pk=held.pk).update(
            authorized_at=ends_at - timedelta(seconds=120), capture_before=ends_at
        )
        tasks.expire_due()
        held.refresh_from_db()
        assert (held.status, held.voided_at) == ("voided", ends_at)

    def test_the_pump_does_not_wait_for_a_hold_that_ends_later(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"it waits for {seconds} s"))
        tasks.expire_due()
        held.refresh_from_db()
        assert held.status == "authorized"

    @pytest.mark.rule("expiry.end")
    def test_an_unpaid_one_expires(self, unpaid: Checkout) -> None:
        make_late(unpaid)
        tasks.expire_due()
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.expired_at) == ("expired", unpaid.payable_until)
