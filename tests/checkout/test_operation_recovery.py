"""Operations that got no clear answer are repeated or looked up until their outcome is known."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from checkout import cancellations, operation_recovery, tasks
from checkout.models import Checkout
from checkout.states import OperationInProgress
from config.lib import clock
from config.lib.bulkhead import Bulkhead
from config.lib.deadline import Deadline
from payments import bulkheads, operations, provider
from payments.models import Operation
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank, fault_injection
from payments.providers.sandbox.models import Call
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.outages import DONE, UNDONE, InDoubt, break_down, events, overhear, pass_time, pump, seen
from tests.refusals import nothing_moves, refused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]
DAY, MINUTE, MICROSECOND = timedelta(days=1), timedelta(minutes=1), timedelta(microseconds=1)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, UUID]]:
    return overhear(monkeypatch)


class TestCapture:
    @pytest.mark.rule("api.retry_after", "doubt.capture_before")
    @pytest.mark.parametrize("mode", UNDONE + DONE)
    def test_without_a_response_is_a_504_with_a_retry_after_header(
        self, api: Api, held: Checkout, mode: str
    ) -> None:
        break_down("capture", mode)
        break_down("look_up", "down")
        answer = api.post(f"checkouts/{held.pk}/capture")
        refused(answer, 504, "outcome_unknown")
        assert answer["Retry-After"] == "2"
        read = api.get(f"checkouts/{held.pk}").json()["data"]
        assert (read["status"], read["pending_operation"]) == ("authorized", "capture")
        assert read["available_actions"] == [] and "captured_at" not in read
        pump()
        again = api.post(f"checkouts/{held.pk}/capture")
        assert (again.status_code, again.json()["data"]["status"]) == (200, "captured")
        assert "pending_operation" not in again.json()["data"]
        key = Operation.objects.get(kind="capture").pk
        assert Call.objects.get(kind="capture").key == key
        assert factories.balances(held.pk) == {"provider": 9000, "merchant": -9000}

    @pytest.mark.parametrize("mode", DONE)
    def test_is_resolved_by_a_look_up_in_the_same_call(self, api: Api, held: Checkout, mode: str) -> None:
        break_down("capture", mode)
        answer = api.post(f"checkouts/{held.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")

    @pytest.mark.rule("doubt.capture_before", "doubt.unknown")
    def test_before_the_deadline_it_is_sent_again_under_the_same_key(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any]
    ) -> None:
        operation = in_doubt("capture", times=3)
        calls.clear()
        for _ in range(3):
            pump()
        assert calls == [("capture", operation.pk)] * 3
        assert seen(unpaid) == ("captured",) * 3
        assert Call.objects.filter(kind="capture").count() == 1

    @pytest.mark.rule("doubt.capture_after")
    @pytest.mark.parametrize(("mode", "end"), [("down", "voided"), ("done_then_reset", "captured")])
    def test_after_the_deadline_it_is_looked_up_and_never_sent_again(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any], mode: str, end: str
    ) -> None:
        operation = in_doubt("capture", mode)
        unpaid.refresh_from_db()
        make_late(unpaid)
        calls.clear()
        break_down("look_up", "down")
        tasks.expire_due()
        pump()
        assert (seen(unpaid)[0], calls) == ("authorized", [("look_up", operation.pk)])
        pump()
        assert calls[1] == ("look_up", operation.pk)
        assert [verb for verb, _ in calls[2:]] == (["void"] if end == "voided" else [])
        assert seen(unpaid) == (end,) * 3
        assert events() == ["checkout.authorized", *["checkout.voided"] * (end == "voided")]

    @pytest.mark.rule("doubt.refusal")
    def test_refused_as_already_captured_stays_unknown_if_the_look_up_does_not_find_it(
        self, in_doubt: InDoubt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The payment was captured, perhaps by the first call of this capture, so the capture has not failed."""
        operation = in_doubt("capture")
        answers = {
            "capture": Outcome(Verdict.FAILED, reason="already_captured"),
            "look_up": Outcome(Verdict.NOT_FOUND),
        }
        monkeypatch.setattr(fault_injection, "call_with_faults", lambda verb, _: answers[verb])
        pump()
        operation.refresh_from_db()
        assert (operation.state, operation.ended_at) == ("unknown", None)

    def test_a_fence_in_doubt_keeps_it_open(self, api: Api, unpaid: Checkout, in_doubt: InDoubt) -> None:
        in_doubt("capture")
        unpaid.refresh_from_db()
        make_late(unpaid)
        break_down("void", "done_then_reset")
        pump()
        tasks.expire_due()
        refused(api.post(f"checkouts/{unpaid.pk}/cancel"), 409, "operation_in_progress")
        assert seen(unpaid) == ("authorized", "authorized", "voided")
        pump()
        assert seen(unpaid) == ("voided",) * 3
        assert unpaid.voided_at == unpaid.capture_before and events()[1:] == ["checkout.voided"]

    @pytest.mark.rule("doubt.nothing_over_it")
    @pytest.mark.parametrize("kind", ["authorize", "capture"])
    def test_neither_cancel_nor_refund_runs_over_an_open_operation(
        self, api: Api, in_doubt: InDoubt, kind: str
    ) -> None:
        path = f"checkouts/{in_doubt(kind).payment.subject}"
        with nothing_moves():
            refused(api.post(f"{path}/cancel"), 409, "operation_in_progress")
            refund = api.post(f"{path}/refund", {"merchant_refund_ref": "r-1"})
            code = {"authorize": "not_refundable", "capture": "operation_in_progress"}[kind]
            refused(refund, 409, code)

    def test_a_pump_that_stalled_starts_no_second_fence(
        self, unpaid: Checkout, in_doubt: InDoubt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stalled, look_up = in_doubt("capture"), operations.look_up
        unpaid.refresh_from_db()
        make_late(unpaid)

        def overtaken(operation: Operation, **rest: Any) -> Outcome:
            outcome = look_up(operation, **rest)
            monkeypatch.setattr(operations, "look_up", look_up)
            pump()
            return outcome

        monkeypatch.setattr(operations, "look_up", overtaken)
        operation_recovery.finish_operation(stalled)
        assert Operation.objects.filter(kind="void").count() == 1
        assert (seen(unpaid), events()[1:]) == (("voided",) * 3, ["checkout.voided"])

    @pytest.mark.rule("capture.provider_refused")
    @pytest.mark.parametrize("no", [Verdict.DECLINED, Verdict.FAILED])
    def test_that_is_clearly_refused_is_a_502_and_changes_nothing(
        self, api: Api, held: Checkout, monkeypatch: pytest.MonkeyPatch, no: Verdict
    ) -> None:
        before = api.get(f"checkouts/{held.pk}").json()["data"]
        with monkeypatch.context() as patched:
            patched.setattr(fault_injection, "call_with_faults", lambda *_: Outcome(no, reason="refused"))
            refused(api.post(f"checkouts/{held.pk}/capture"), 502, "provider_error")
        after = api.get(f"checkouts/{held.pk}").json()["data"]
        assert after == before | {"updated_at": after["updated_at"]}
        assert seen(held) == ("authorized", "authorized", "held") and factories.balances(held.pk) == {}
        assert api.post(f"checkouts/{held.pk}/capture").status_code == 200


class TestAPayerWhoReturnsFromTheBank:
    """When a payer returns from the bank's page, the payer does not have to wait for the pump."""

    def test_sees_the_outcome_of_the_open_operation(self, unpaid: Checkout, in_doubt: InDoubt) -> None:
        in_doubt("authorize", "done_then_reset")
        operation_recovery.finish_for_payer(unpaid.pk)
        assert seen(unpaid) == ("authorized", "authorized", "held")

    def test_causes_no_call_if_no_operation_is_open(self, held: Checkout, calls: list[Any]) -> None:
        operation_recovery.finish_for_payer(held.pk)
        assert calls == []

    def test_causes_no_call_if_no_slot_is_free(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        in_doubt("authorize", "done_then_reset")
        calls.clear()
        monkeypatch.setattr(bulkheads, "PAYERS", Bulkhead(0))
        operation_recovery.finish_for_payer(unpaid.pk)
        assert calls == []


class TestAnAuthorizationThatNeverArrived:
    @pytest.mark.rule("doubt.authorize")
    @pytest.mark.parametrize(
        ("age", "is_abandoned", "is_sent"),
        [(MINUTE - MICROSECOND, False, True), (MINUTE, False, False), (MICROSECOND, True, False)],
    )
    def test_is_sent_again_for_a_minute_while_the_payer_waits(
        self,
        in_doubt: InDoubt,
        calls: list[tuple[str, UUID]],
        age: timedelta,
        is_abandoned: bool,
        is_sent: bool,
    ) -> None:
        operation = in_doubt("authorize")
        operation.payment.abandoned_at = clock.now() if is_abandoned else None
        calls.clear()
        operation_recovery._ask_authorization(operation, age, Deadline.after(8))
        assert [verb for verb, _ in calls] == ["look_up", *["authorize"] * is_sent]

    @pytest.mark.rule("doubt.authorize")
    @pytest.mark.parametrize(
        ("age", "mode", "verdict"),
        [
            (DAY - MICROSECOND, None, Verdict.NOT_FOUND),
            (DAY, None, Verdict.FAILED),
            (DAY, "not_vouched", Verdict.NOT_FOUND),
        ],
    )
    def test_has_failed_after_a_day_if_the_provider_vouches_for_it(
        self, in_doubt: InDoubt, age: timedelta, mode: str | None, verdict: Verdict
    ) -> None:
        operation = in_doubt("authorize")
        if mode:
            break_down("look_up", mode)
        assert operation_recovery._ask_authorization(operation, age, Deadline.after(8)).verdict == verdict


@pytest.mark.rule("doubt.old_key")
@pytest.mark.parametrize(("age", "may_be_sent"), [(-MICROSECOND, True), (timedelta(0), False)])
def test_a_key_is_used_until_an_hour_before_the_end_of_its_life(
    monkeypatch: pytest.MonkeyPatch, age: timedelta, may_be_sent: bool
) -> None:
    now = clock.now()
    life = provider.current_provider().key_life
    monkeypatch.setattr(clock, "now", lambda: now)
    operation = Operation(state="unknown", first_sent_at=now - (life - timedelta(hours=1)) - age)
    assert operation_recovery.may_be_sent(operation) == may_be_sent


@pytest.mark.rule("doubt.sleeper", "doubt.old_key")
class TestANewKey:
    def renew(self, operation: Operation, lease: UUID | None) -> bool:
        return operation_recovery._renew_operation(operation.payment.checkout_uuid, operation.pk, lease)

    def test_is_given_only_to_the_process_with_the_lease_and_only_once(self, in_doubt: InDoubt) -> None:
        operation = in_doubt("void")
        assert not self.renew(operation, uuid4())
        assert self.renew(operation, None)
        assert not self.renew(operation, None)
        assert Operation.objects.filter(kind="void").count() == 2

    def test_is_not_given_to_a_capture_that_is_no_longer_wanted(
        self, unpaid: Checkout, in_doubt: InDoubt
    ) -> None:
        operation = in_doubt("capture")
        unpaid.refresh_from_db()
        make_late(unpaid)
        assert not self.renew(operation, None)
        assert Operation.objects.filter(kind="capture").count() == 1


@pytest.mark.parametrize("record", [operation_recovery._begin_fence, operation_recovery._renew_operation])
def test_recording_is_refused_within_a_transaction_that_could_roll_it_back(
    record: Callable[[UUID, UUID, None], object],
) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        record(uuid4(), uuid4(), None)


@pytest.mark.rule("doubt.refusal")
class TestARefusalOfARepeatedCall:
    """The provider refuses a repeated call, although the first call might have succeeded.

    This happens if the provider has forgotten the first call's key.
    """

    @pytest.mark.parametrize("kind", ["refund", "capture", "void"])
    def test_is_ignored_if_the_first_call_was_carried_out(self, in_doubt: InDoubt, kind: str) -> None:
        operation = in_doubt(kind, "done_then_reset")
        break_down(kind, "forgets_keys")
        pump()
        operation.refresh_from_db()
        assert (operation.state, operation.attempts) == ("succeeded", 2)

    def test_is_ignored_if_the_first_call_was_accepted(self, in_doubt: InDoubt) -> None:
        """The bank has accepted the first call, which is pending, and therefore refuses the second call."""
        operation = in_doubt("void", "pending_for_ever")
        Operation.objects.filter(pk=operation.pk).update(state="unknown")  # simulate a lost response
        break_down("void", "forgets_keys")
        pump()
        operation.refresh_from_db()
        assert operation.state == "pending"

    def test_is_ignored_if_the_authorization_arrived_after_its_look_up(
        self, unpaid: Checkout, in_doubt: InDoubt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        in_doubt("authorize", "done_then_reset")
        look_up, answers = operations.look_up, [Outcome(Verdict.NOT_FOUND)]
        monkeypatch.setattr(
            operations, "look_up", lambda *given, **named: (answers or [look_up(*given, **named)]).pop()
        )
        break_down("authorize", "forgets_keys")
        pump()
        assert seen(unpaid) == ("authorized", "authorized", "held")

    @pytest.mark.parametrize("is_late", [True, False])
    def test_leaves_a_capture_in_doubt_because_the_first_call_can_still_arrive(
        self, unpaid: Checkout, in_doubt: InDoubt, is_late: bool
    ) -> None:
        """The bank refuses the second call and does not store the refusal. The first call can still arrive."""
        capture = in_doubt("capture")
        pass_time(capture, seconds=1)
        break_down("capture", "not_accepted")
        pump()
        capture.refresh_from_db()
        assert (capture.state, capture.reason) == ("unknown", "invalid_request")
        with pytest.raises(OperationInProgress):
            cancellations.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        if is_late:
            unpaid.refresh_from_db()
            make_late(unpaid)
            pump()
        bank.capture(key=capture.pk, payment=capture.payment_id)
        pump()
        assert seen(unpaid) == ("voided" if is_late else "captured",) * 3

    def test_leaves_a_capture_under_a_new_key_in_doubt(self, unpaid: Checkout, in_doubt: InDoubt) -> None:
        """The bank refuses the call under the new key. The call under the first key can still arrive."""
        first = in_doubt("capture")
        Operation.objects.filter(pk=first.pk).update(attempts=operation_recovery.ATTEMPTS_PER_KEY)
        break_down("capture", "not_accepted")
        pump()
        assert Operation.objects.exclude(pk=first.pk).get(kind="capture").state == "unknown"
        bank.capture(key=first.pk, payment=first.payment_id)
        pump()
        assert seen(unpaid) == ("captured",) * 3

    def test_leaves_the_operation_in_doubt_if_the_look_up_fails(self, in_doubt: InDoubt) -> None:
        operation = in_doubt("refund", "done_then_reset")
        break_down("refund", "forgets_keys")
        break_down("look_up", "down")
        pump()
        operation.refresh_from_db()
        assert (operation.state, operation.ended_at) == ("unknown", None)


@pytest.mark.rule("doubt.old_key")
def test_release_that_the_bank_does_not_know_gets_a_new_key_after_four_calls(held: Checkout) -> None:
    """The provider might have stored an error for the key, and might repeat it, so a new key is needed."""
    break_down("void", "error", times=99)
    cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
    keys = []
    for _ in range(13):
        pump()
        keys.append(Operation.objects.filter(kind="void").count())
    assert keys == [1] * 4 + [2] * 4 + [3] * 5


@pytest.mark.rule("doubt.old_key")
def test_release_that_the_bank_has_carried_out_is_only_looked_up_after_four_calls(
    in_doubt: InDoubt, calls: list[tuple[str, UUID]]
) -> None:
    operation = in_doubt("void", "done_then_reset")
    Operation.objects.filter(pk=operation.pk).update(attempts=4)
    calls.clear()
    pump()
    operation.refresh_from_db()
    assert (operation.state, calls) == ("succeeded", [("look_up", operation.pk)])


@pytest.mark.rule("doubt.refund")
def test_money_is_refunded_once_even_if_the_bank_forgets_the_refunds_key(
    in_doubt: InDoubt, calls: list[tuple[str, UUID]]
) -> None:
    """Because the bank has forgotten the key, it would refund the money again if the refund were sent again."""
    operation = in_doubt("refund", "done_then_reset")
    break_down("refund", "forgets_keys")
    calls.clear()
    pump()
    operation.refresh_from_db()
    assert (operation.state, calls) == ("succeeded", [("look_up", operation.pk)])
    assert Call.objects.filter(kind="refund").count() == 1
