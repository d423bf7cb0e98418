"""Silence is not an answer (INTERFACE.md 10): what a provider leaves in doubt is brought to the truth."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

import pytest
from django.db.models import F

from checkout import proof, refunds, tasks, transitions
from checkout.models import Checkout
from config.lib import clock
from payments import ledger, operations
from payments.models import Discrepancy, Operation, Payment
from payments.provider import Outcome
from payments.providers.sandbox import misbehaving
from payments.providers.sandbox.models import Call, Charge, Fault
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.refusals import nothing_moves, refused
from webhooks.models import Event

pytestmark = pytest.mark.django_db
UNDONE = ["down", "error", "hang"]
DONE = ["done_then_hang", "done_then_reset", "done_then_error", "nonsense"]
KINDS = ["authorize", "capture", "void", "refund"]
InDoubt: TypeAlias = Callable[..., Operation]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bank that hangs is waited for as long as ever, but in smaller seconds."""
    monkeypatch.setattr(operations, "CALL_SECONDS", dict.fromkeys(KINDS, 0.02))
    monkeypatch.setattr(operations, "LOOK_UP_SECONDS", 0.02)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, UUID]]:
    """What the bank is asked from now on, whether it answers or not."""
    asked: list[tuple[str, UUID]] = []
    answer = misbehaving.call

    def call(verb: str, arguments: dict[str, Any]) -> Outcome:
        asked.append((verb, arguments["key"]))
        return answer(verb, arguments)

    monkeypatch.setattr(misbehaving, "call", call)
    return asked


def break_down(verb: str, mode: str, times: int = 1) -> None:
    misbehaving.set_fault(verb=verb, mode=mode, times=times)


def pump() -> None:
    """Let the pump run at a moment when everything that is open is due."""
    Operation.objects.filter(ended_at=None).update(next_attempt_at="2020-01-01T00:00Z")
    tasks.finish_operations()


def pass_time(operation: Operation, **span: float) -> None:
    rows = Operation.objects.filter(pk=operation.pk)
    rows.update(created_at=F("created_at") - timedelta(**span))


def seen(checkout: Checkout) -> tuple[str, str, str]:
    """How the checkout, its newest payment and the bank's newest charge stand."""
    checkout.refresh_from_db()
    payment, charge = Payment.objects.latest("created_at"), Charge.objects.order_by("-id").first()
    return checkout.status, payment.status, charge.state if charge else ""


def events() -> list[str]:
    return list(Event.objects.order_by("id").values_list("type", flat=True))


@pytest.fixture
def in_doubt(unpaid: Checkout, pay: Callable[..., Checkout]) -> InDoubt:
    """Bring the unpaid checkout to the act of this kind, and let that get no clear answer, `times` times."""

    def brought(kind: str, mode: str = "down", times: int = 1) -> Operation:
        if kind == "refund":
            transitions.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        elif kind != "authorize":
            pay(unpaid)
        break_down(kind, mode, times)
        if kind == "authorize":
            pay(unpaid)
        elif kind == "capture":
            break_down("look_up", "down")
            with pytest.raises(transitions.OutcomeUnknown):
                transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        elif kind == "void":
            transitions.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
            tasks.finish_operations()
        else:
            refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
            tasks.finish_operations()
        return Operation.objects.select_related("payment").get(kind=kind)

    return brought


@pytest.fixture(autouse=True)
def _proven(db: None) -> Iterator[None]:
    """Whatever happened, the ledger is right."""
    yield
    assert proof.breaches() == []


@pytest.mark.parametrize("kind", KINDS)
class TestSilence:
    @pytest.mark.parametrize("mode", UNDONE + DONE)
    def test_is_unknown_and_never_failed(self, in_doubt: InDoubt, kind: str, mode: str) -> None:
        operation = in_doubt(kind, mode)
        assert (operation.state, operation.ended_at, operation.reason) == ("unknown", None, "")
        assert operation.payment.status not in ("declined", "refunded", "voided")
        assert Fault.objects.get(verb=kind).times == 0, "the bank has gone wrong indeed"

    def test_of_a_day_is_left_for_a_person_once(self, in_doubt: InDoubt, kind: str) -> None:
        operation = in_doubt(kind, times=9)
        break_down("look_up", "down", times=9)
        pass_time(operation, hours=23, minutes=59)
        pump()
        assert not Discrepancy.objects.exists()
        pass_time(operation, minutes=2)
        pump()
        pump()
        found = Discrepancy.objects.get()
        assert (found.kind, found.operation, found.merchant) == (
            "in_doubt_for_a_day",
            operation,
            operation.payment.merchant,
        )
        operation.refresh_from_db()
        assert operation.state == "unknown"

    def test_an_answer_with_another_amount_is_no_answer(
        self, in_doubt: InDoubt, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        operation, answer = in_doubt(kind), misbehaving.call
        before = operation.payment.status

        def call(verb: str, arguments: dict[str, Any]) -> Outcome:
            outcome = answer(verb, arguments)
            return outcome if outcome.amount is None else replace(outcome, amount=1)

        monkeypatch.setattr(misbehaving, "call", call)
        pump()
        pump()
        found = Discrepancy.objects.get()
        assert (found.kind, found.operation, found.facts) == ("another_amount", operation, {"amount": 1})
        operation.refresh_from_db()
        assert (operation.state, operation.payment.status) == ("unknown", before)


class TestCapture:
    @pytest.mark.parametrize("mode", UNDONE + DONE)
    def test_is_a_504_that_tells_when_to_ask_again(self, api: Api, held: Checkout, mode: str) -> None:
        break_down("capture", mode)
        break_down("look_up", "down")
        answer = api.post(f"checkouts/{held.pk}/capture")
        refused(answer, 504, "outcome_unknown")
        assert answer["Retry-After"] == "2"
        read = api.get(f"checkouts/{held.pk}").json()["data"]
        assert (read["status"], read["pending_operation"]) == ("authorized", "capture")
        assert "capture" in read["available_actions"] and "captured_at" not in read
        pump()
        again = api.post(f"checkouts/{held.pk}/capture")
        assert (again.status_code, again.json()["data"]["status"]) == (200, "captured")
        assert "pending_operation" not in again.json()["data"]
        key = Operation.objects.get(kind="capture").pk
        assert Call.objects.get(kind="capture").key == key
        assert ledger.balances(held.pk) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.parametrize("mode", DONE)
    def test_is_resolved_by_a_look_up_in_the_same_call(self, api: Api, held: Checkout, mode: str) -> None:
        break_down("capture", mode)
        answer = api.post(f"checkouts/{held.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")

    def test_before_the_deadline_it_is_sent_again_under_the_same_key(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any]
    ) -> None:
        operation = in_doubt("capture", times=3)
        for _ in range(3):
            pump()
        assert [call for call in calls if call[0] == "capture"] == [("capture", operation.pk)] * 4
        assert seen(unpaid) == ("captured",) * 3
        assert Call.objects.filter(kind="capture").count() == 1

    @pytest.mark.parametrize(("mode", "end"), [("down", "voided"), ("done_then_reset", "captured")])
    def test_after_the_deadline_it_is_asked_about_and_never_sent_again(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any], mode: str, end: str
    ) -> None:
        operation = in_doubt("capture", mode)
        unpaid.refresh_from_db()
        make_late(unpaid)
        calls.clear()
        break_down("look_up", "down")
        tasks.keep_deadlines()
        pump()
        assert (seen(unpaid)[0], calls) == ("authorized", [("look_up", operation.pk)])
        pump()
        assert calls[1] == ("look_up", operation.pk)
        assert [verb for verb, _ in calls[2:]] == (["void"] if end == "voided" else [])
        assert seen(unpaid) == (end,) * 3
        assert events() == ["checkout.authorized", *["checkout.voided"] * (end == "voided")]

    def test_a_fence_in_doubt_keeps_it_open(self, api: Api, unpaid: Checkout, in_doubt: InDoubt) -> None:
        in_doubt("capture")
        unpaid.refresh_from_db()
        make_late(unpaid)
        break_down("void", "done_then_reset")
        pump()
        tasks.keep_deadlines()
        refused(api.post(f"checkouts/{unpaid.pk}/cancel"), 409, "operation_in_progress")
        assert seen(unpaid) == ("authorized", "authorized", "voided")
        pump()
        assert seen(unpaid) == ("voided",) * 3
        assert unpaid.voided_at == unpaid.capture_before and events()[1:] == ["checkout.voided"]

    @pytest.mark.parametrize("kind", ["authorize", "capture"])
    def test_neither_cancel_nor_refund_runs_over_a_doubt(
        self, api: Api, in_doubt: InDoubt, kind: str
    ) -> None:
        path = f"checkouts/{in_doubt(kind).payment.subject}"
        with nothing_moves():
            refused(api.post(f"{path}/cancel"), 409, "operation_in_progress")
            refund = api.post(f"{path}/refund", {"merchant_refund_ref": "r-1"})
            refused(refund, 409, "operation_in_progress")


class TestAuthorize:
    def test_a_hold_found_while_the_payer_waits_gives_the_merchant_the_full_time(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any]
    ) -> None:
        operation = in_doubt("authorize", "done_then_reset")
        pass_time(operation, seconds=45)
        before = clock.now()
        pump()
        assert seen(unpaid) == ("authorized", "authorized", "held")
        assert unpaid.authorized_at is not None and unpaid.authorized_at >= before
        assert unpaid.capture_before == unpaid.authorized_at + timedelta(seconds=120)
        assert events() == ["checkout.authorized"]
        assert calls == [("authorize", operation.pk), ("look_up", operation.pk)]

    def test_what_never_arrived_is_sent_again_under_the_same_key(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any]
    ) -> None:
        operation = in_doubt("authorize", times=2)
        pump()
        assert seen(unpaid) == ("created", "authorizing", "")
        pump()
        assert seen(unpaid) == ("authorized", "authorized", "held")
        assert calls == [(verb, operation.pk) for verb in ("authorize", *("look_up", "authorize") * 2)]

    @pytest.mark.parametrize(("age", "seconds"), [(0, 2), (59, 2), (61, 10), (3600, 10), (86_000, 10)])
    def test_is_asked_about_every_2_s_and_after_a_minute_every_10_s(
        self, in_doubt: InDoubt, age: int, seconds: int
    ) -> None:
        operation = in_doubt("authorize")
        break_down("look_up", "down")
        pass_time(operation, seconds=age)
        pump()
        operation.refresh_from_db()
        assert operation.next_attempt_at is not None
        wait = operation.next_attempt_at - clock.now()
        assert timedelta(seconds=seconds - 1) < wait <= timedelta(seconds=seconds)

    def test_for_a_minute_no_other_card_takes_its_place(
        self, unpaid: Checkout, in_doubt: InDoubt, pay: Callable[..., Checkout]
    ) -> None:
        pass_time(in_doubt("authorize"), seconds=58)
        with nothing_moves(), pytest.raises(transitions.OperationInProgress):
            pay(unpaid)

    @pytest.mark.parametrize("mode", ["done_then_reset", "down"])
    def test_after_a_minute_another_card_does_and_the_first_is_let_go_whenever_it_is_found(
        self, unpaid: Checkout, in_doubt: InDoubt, pay: Callable[..., Checkout], mode: str
    ) -> None:
        first = in_doubt("authorize", mode)
        pass_time(first, seconds=61)
        paid = pay(unpaid, "5555555555554444")
        assert (paid.status, events()) == ("authorized", ["checkout.authorized"])
        first.payment.refresh_from_db()
        assert first.payment.abandoned_at is not None and paid.payment != first.payment
        transitions.capture(paid.merchant, paid.pk, cause=CAUSE)
        pump()
        pass_time(first, hours=24)
        pump()
        first.payment.refresh_from_db()
        assert first.payment.status == ("voided" if mode == "done_then_reset" else "declined")
        assert [charge.state for charge in Charge.objects.filter(payment=first.payment_id)] == (
            ["voided"] if mode == "done_then_reset" else []
        )
        assert (seen(unpaid), events()) == (("captured",) * 3, ["checkout.authorized"])

    def test_a_hold_that_is_found_before_another_card_is_used_is_let_go_too(
        self, unpaid: Checkout, in_doubt: InDoubt, pay: Callable[..., Checkout]
    ) -> None:
        pass_time(in_doubt("authorize", "done_then_reset"), seconds=61)
        transitions.use_another_card(unpaid.pk)
        pump()
        pump()
        assert (seen(unpaid), events()) == (("created", "voided", "voided"), [])
        assert pay(unpaid).status == "authorized"

    def test_an_unpaid_checkout_expires_all_the_same_and_the_hold_is_let_go(
        self, unpaid: Checkout, in_doubt: InDoubt
    ) -> None:
        operation = in_doubt("authorize", "done_then_reset")
        make_late(unpaid)
        tasks.keep_deadlines()
        assert seen(unpaid)[0] == "created", "the payer still waits"
        pass_time(operation, seconds=61)
        tasks.keep_deadlines()
        assert seen(unpaid) == ("expired", "authorizing", "held")
        pump()
        pump()
        assert (seen(unpaid), events()) == (("expired", "voided", "voided"), [])
