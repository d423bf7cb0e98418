"""A thread that waits for the provider holds a slot but no lock. Captures have their own slots."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from checkout import authorizations, cancellations, captures, mate_shares, operation_recovery, tasks
from checkout.models import Checkout
from config import gunicorn
from config.lib import bulkhead
from config.lib.bulkhead import Bulkhead, Busy
from config.lib.deadline import Deadline
from payments import bulkheads
from payments.models import Merchant, Operation
from payments.provider import CardUse, Outcome, Verdict
from payments.providers.sandbox import bank, client, fault_injection
from tests import mates
from tests.config.lib.slots import free_slots
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory, checkout
from tests.outages import leave_in_doubt, overhear
from tests.refusals import nothing_moves, refused

EVERY = (bulkheads.PAYERS, bulkheads.CAPTURES, *bulkheads.PUMPS.values())


@pytest.fixture
def fill() -> Iterator[Callable[..., ExitStack]]:
    """Yield a function that takes all slots of the given bulkheads.

    The function returns a stack. When the stack is closed, these slots are free again. At the end of the
    test, all slots must be free.
    """
    with ExitStack() as all_of_them:

        def filled(*some: Bulkhead) -> ExitStack:
            others = all_of_them.enter_context(ExitStack())
            for bulkhead in some:
                for _ in range(bulkhead.slots):
                    others.enter_context(bulkhead.slot()).take()
            return others

        yield filled
    assert [free_slots(bulkhead) for bulkhead in EVERY] == [bulkhead.slots for bulkhead in EVERY], (
        "a slot was lost"
    )


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the waits for slots. Return a list that collects the seconds for which callers would wait."""
    seconds: list[float] = []

    def heard(one: Bulkhead, patience: float) -> bool:
        seconds.append(patience)
        assert not is_in_transaction()
        return one.enter()

    monkeypatch.setattr(Bulkhead, "wait", heard)
    return seconds


def is_in_transaction() -> bool:
    """Return whether the code under test has opened a transaction within the test's own transaction."""
    return len(connection.savepoint_ids) > 0


class TestEnough:
    def test_slots_suffice_for_ten_orders_a_second_at_a_slow_provider(self, settings: Settings) -> None:
        orders, seconds, peak = 10, 0.8, 1.5
        assert 2 * orders * seconds * peak == settings.PROVIDER_SLOTS  # each order makes two calls
        assert orders * seconds * peak <= settings.CAPTURE_SLOTS

    def test_threads_suffice_for_all_waiters_and_forty_more(self, settings: Settings) -> None:
        assert gunicorn.threads == 3 * (settings.PROVIDER_SLOTS + settings.CAPTURE_SLOTS) + 40
        assert bulkheads.QUEUE_PER_SLOT == 2 and bulkheads.CAPTURE_WAITERS.places < 40
        assert (len(bulkheads.PUMPS) + 1) * settings.PUMP_SLOTS == settings.CELERY_WORKER_CONCURRENCY

    def test_operators_documentation_has_the_numbers(self, settings: Settings) -> None:
        words = " ".join((settings.BASE_DIR / "docs" / "operate.md").read_text().split())
        assert f"+ 40 = {gunicorn.threads} threads." in words
        assert f"`PUMP_SLOTS` = {settings.CELERY_WORKER_CONCURRENCY}." in words


@pytest.mark.rule("capture.slot")
@pytest.mark.django_db
class TestPayersAndCaptures:
    """Captures and payers use separate slots.

    Otherwise, captures would get a 503 while payers wait for a slow bank.
    """

    def test_a_capture_needs_no_slot_of_the_payers(
        self, api: Api, held: Checkout, fill: Callable[..., ExitStack], waits: list[float]
    ) -> None:
        fill(bulkheads.PAYERS, *bulkheads.PUMPS.values())
        answer = api.post(f"checkouts/{held.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"], waits) == (200, "captured", [])

    def test_a_payer_needs_no_slot_of_the_captures(
        self, unpaid: Checkout, fill: Callable[..., ExitStack], waits: list[float]
    ) -> None:
        fill(bulkheads.CAPTURES, *bulkheads.PUMPS.values())
        card = CardUse(bank.tokenise(subject=unpaid.pk, number="4242424242424242"))
        paid = authorizations.authorize(unpaid.pk, card=card, lead=CustomerFactory.create(), cause=CAUSE)
        assert (paid.verdict, waits) == (Verdict.SUCCEEDED, [])


@pytest.mark.django_db
class TestWithoutASlot:
    @pytest.mark.rule("capture.slot", "limit.slots")
    def test_a_capture_waits_two_seconds_is_a_503_and_works_when_repeated(
        self, api: Api, held: Checkout, fill: Callable[..., ExitStack], waits: list[float]
    ) -> None:
        others = fill(bulkheads.CAPTURES)
        with nothing_moves():
            answer = api.post(f"checkouts/{held.pk}/capture")
        refused(answer, 503, "service_unavailable")
        assert answer["Retry-After"] == "1"
        assert waits == [pytest.approx(bulkhead.WAIT_SECONDS, abs=0.5)]
        others.close()
        again = api.post(f"checkouts/{held.pk}/capture")
        assert (again.status_code, again.json()["data"]["status"]) == (200, "captured")

    def test_a_capture_gets_a_slot_that_becomes_free_in_time(
        self,
        api: Api,
        held: Checkout,
        fill: Callable[..., ExitStack],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        others = fill(bulkheads.CAPTURES)

        def free_now(one: Bulkhead, patience: float) -> bool:
            others.close()
            return one.enter()

        monkeypatch.setattr(Bulkhead, "wait", free_now)
        answer = api.post(f"checkouts/{held.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")

    def test_a_payment_waits_and_the_card_can_be_used_when_repeated(
        self, unpaid: Checkout, fill: Callable[..., ExitStack], waits: list[float]
    ) -> None:
        others = fill(bulkheads.PAYERS)
        card = CardUse(bank.tokenise(subject=unpaid.pk, number="4242424242424242"))
        lead = CustomerFactory.create()
        with nothing_moves(), pytest.raises(Busy):
            authorizations.authorize(unpaid.pk, card=card, lead=lead, cause=CAUSE)
        assert waits == [pytest.approx(bulkhead.WAIT_SECONDS, abs=0.5)]
        others.close()
        authorizations.authorize(unpaid.pk, card=card, lead=lead, cause=CAUSE)
        unpaid.refresh_from_db()
        assert unpaid.status == "authorized"

    def test_a_share_waits_and_can_be_paid_when_repeated(
        self,
        unpaid: Checkout,
        pay: Callable[..., Checkout],
        fill: Callable[..., ExitStack],
        waits: list[float],
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        others = fill(bulkheads.PAYERS)
        card = CardUse(bank.tokenise(subject=share.pk, number="5555555555554444"))
        mate = CustomerFactory.create()
        with nothing_moves(), pytest.raises(Busy):
            mate_shares.pay(share.pk, card=card, mate=mate, cause=CAUSE)
        assert len(waits) == 1
        others.close()
        assert mate_shares.pay(share.pk, card=card, mate=mate, cause=CAUSE).verdict == Verdict.SUCCEEDED

    @pytest.mark.rule("limit.slots")
    def test_reads_cancels_and_refusals_wait_for_nothing(
        self, api: Api, held: Checkout, fill: Callable[..., ExitStack], waits: list[float]
    ) -> None:
        fill(*EVERY)
        assert api.get(f"checkouts/{held.pk}").status_code == 200
        partial = api.post(f"checkouts/{held.pk}/capture", {"amount": 1})
        refused(partial, 422, "partial_capture_not_supported")
        assert api.post(f"checkouts/{held.pk}/cancel").status_code == 200
        refused(api.post(f"checkouts/{held.pk}/capture"), 409, "not_capturable")
        assert waits == []

    def test_a_capture_that_was_done_already_needs_no_slot(
        self, api: Api, captured: Checkout, fill: Callable[..., ExitStack], waits: list[float]
    ) -> None:
        fill(*EVERY)
        with nothing_moves():
            answer = api.post(f"checkouts/{captured.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")
        refund = api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r-1"})
        assert (refund.status_code, waits) == (204, [])

    def test_the_pump_leaves_all_operations_due(
        self, held: Checkout, fill: Callable[..., ExitStack], waits: list[float]
    ) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        others = fill(*EVERY)
        with nothing_moves():
            tasks.finish_operations()
            operation_recovery.finish_for_payer(held.pk)
        others.close()
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "succeeded" and waits == []


@pytest.mark.django_db
class TestThePump:
    def test_of_voids_does_not_wait_for_slow_authorizations(
        self, held: Checkout, pay: Callable[..., Checkout], fill: Callable[..., ExitStack]
    ) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        fault_injection.set_fault(verb="authorize", mode="down", times=1)
        rows = Operation.objects.filter(payment__checkout_uuid=pay(checkout(held.merchant)).pk)
        rows.update(next_attempt_at="2020-01-01T00:00Z")
        fill(*(one for kinds, one in bulkheads.PUMPS.items() if Operation.Kind.VOID not in kinds))
        fill(bulkheads.PAYERS, bulkheads.CAPTURES)
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "succeeded"
        assert rows.get().attempts == 1, "the authorization waits for a slot of its own kind"

    def test_of_refunds_continues_while_the_others_are_slow(
        self, captured: Checkout, api: Api, fill: Callable[..., ExitStack]
    ) -> None:
        api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r-1"})
        fill(*(one for kinds, one in bulkheads.PUMPS.items() if Operation.Kind.REFUND not in kinds))
        tasks.finish_operations()
        assert Operation.objects.get(kind="refund").state == "pending"

    @pytest.mark.rule("doubt.capture_before", "pump.kinds")
    @pytest.mark.parametrize("behind", ["capture", "void"])
    def test_alternates_captures_and_releases(
        self, acme: Merchant, pay: Callable[..., Checkout], behind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(3):
            cancellations.cancel(acme, pay(checkout(acme)).pk, cause=CAUSE)
            leave_in_doubt(pay(checkout(acme)))
        rows = Operation.objects.filter(ended_at=None)
        rows.update(next_attempt_at="2020-01-01T00:00Z")
        rows.filter(kind=behind).update(next_attempt_at="2020-01-02T00:00Z")
        asked = overhear(monkeypatch)
        tasks.finish_operations()
        assert [verb for verb, _ in asked] == ["capture", "void"] * 3

    def test_has_a_place_for_every_kind(self) -> None:
        kinds = [kind for some in bulkheads.PUMPS for kind in some]
        assert sorted(kinds) == sorted(Operation.Kind)


@pytest.mark.rule("limit.slots")
class TestTheConnection:
    @pytest.mark.django_db(transaction=True)
    def test_is_released_during_a_provider_call(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[object] = []

        def capture(self: object, operation: Operation, patience: float) -> Outcome:
            seen.append(connection.connection)
            return Outcome(Verdict.SUCCEEDED)

        monkeypatch.setattr("payments.providers.sandbox.adapter.SandboxProvider.capture", capture)
        captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert seen == [None]

    @pytest.mark.django_db(transaction=True)
    def test_is_released_while_a_call_waits_for_a_slot(self, held: Checkout) -> None:
        one = Bulkhead(1, queue=1)
        with one.slot() as first, one.slot() as second:
            first.take()
            Checkout.objects.get(pk=held.pk)
            with pytest.raises(Busy):
                second.wait(Deadline.after(0.01))
            assert connection.connection is None


@pytest.mark.django_db
class TestJoining:
    @pytest.fixture
    def in_doubt(self, held: Checkout) -> Checkout:
        """Return a checkout with an open capture that got no answer."""
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        return held

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return a list that collects the verbs of the calls to the provider."""
        verbs: list[str] = []
        money = client.call_for_outcome

        def heard(verb: str, **rest: Any) -> Outcome:
            verbs.append(verb)
            return money(verb, **rest)

        monkeypatch.setattr(client, "call_for_outcome", heard)
        return verbs

    def test_waits_without_a_slot_and_is_refused_with_a_retry(
        self,
        api: Api,
        in_doubt: Checkout,
        asked: list[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        free: list[int] = []
        monkeypatch.setattr(captures, "JOIN_SECONDS", 0.15)
        sleep = SimpleNamespace(sleep=lambda _: free.append(free_slots(bulkheads.CAPTURES)))
        monkeypatch.setattr(captures, "time", sleep)
        with nothing_moves():
            answer = api.post(f"checkouts/{in_doubt.pk}/capture")
        refused(answer, 409, "operation_in_progress")
        assert (answer["Retry-After"], asked) == ("1", [])
        assert set(free) == {bulkheads.CAPTURES.slots}

    @pytest.mark.rule("capture.join")
    def test_gets_the_outcome_even_if_no_slot_is_free(
        self,
        api: Api,
        in_doubt: Checkout,
        asked: list[str],
        fill: Callable[..., ExitStack],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        fill(bulkheads.PAYERS, bulkheads.CAPTURES)

        def pump(_: float) -> None:
            Operation.objects.filter(ended_at=None).update(next_attempt_at="2020-01-01T00:00Z")
            tasks.finish_operations()

        monkeypatch.setattr(captures, "time", SimpleNamespace(sleep=pump))
        answer = api.post(f"checkouts/{in_doubt.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")
        assert asked == ["capture"] and Operation.objects.filter(kind="capture").count() == 1

    @pytest.mark.rule("capture.join")
    def test_a_second_caller_in_the_process_is_refused_at_once(
        self, api: Api, in_doubt: Checkout, asked: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slept: list[float] = []
        monkeypatch.setattr(captures, "time", SimpleNamespace(sleep=slept.append))
        (operation,) = Operation.objects.filter(kind="capture")
        with bulkheads.CAPTURE_WAITERS.place(operation.pk) as is_first, nothing_moves():
            assert is_first
            answer = api.post(f"checkouts/{in_doubt.pk}/capture")
        refused(answer, 409, "operation_in_progress")
        assert (answer["Retry-After"], asked, slept) == ("1", [], [])
        with bulkheads.CAPTURE_WAITERS.place(operation.pk) as is_free_again:
            assert is_free_again

    def test_only_a_few_callers_wait_at_the_same_time(self, in_doubt: Checkout) -> None:
        with ExitStack() as stack:
            ours = [
                stack.enter_context(bulkheads.CAPTURE_WAITERS.place(uuid4()))
                for _ in range(bulkheads.CAPTURE_WAITERS.places + 1)
            ]
        assert ours == [True] * bulkheads.CAPTURE_WAITERS.places + [False]
