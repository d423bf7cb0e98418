"""Accepted calls are looked up until the provider confirms them. Refused calls are reported or sent again.

If the provider repeats an error under a call's key, the call is looked up.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkout import cancellations, captures, refunds, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib import clock
from payments.models import Discrepancy, Operation, Payment
from payments.providers.sandbox.models import Call, Charge
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.outages import break_down, events, overhear, pass_time, pump
from tests.refusals import refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make capture calls return without waiting for the confirmation."""
    monkeypatch.setattr(captures, "ASK_AGAIN_SECONDS", 99.0)
    monkeypatch.setattr(captures, "JOIN_SECONDS", 0.0)


def confirm(kind: str) -> None:
    """Make the bank confirm the calls of this kind that it has accepted, and run the pump."""
    Call.objects.filter(kind=kind).update(settles_at=clock.now() - timedelta(seconds=1))
    pump()


class TestACapture:
    def test_is_looked_up_within_the_merchants_call(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        """The bank confirms this card's capture after three seconds, during the merchant's call."""
        pay(unpaid, "4000000000000077")
        answer = api.post(f"checkouts/{unpaid.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")

    @pytest.mark.rule("doubt.nothing_over_it")
    def test_that_is_not_confirmed_in_time_is_a_504_and_blocks_other_actions(
        self, api: Api, held: Checkout, without_waiting: None
    ) -> None:
        break_down("capture", "pending_for_ever")
        path = f"checkouts/{held.pk}"
        refused(api.post(f"{path}/capture"), 504, "outcome_unknown")
        read = api.get(path).json()["data"]
        assert (read["status"], read["pending_operation"]) == ("authorized", "capture")
        refused(api.post(f"{path}/capture"), 409, "operation_in_progress")
        refused(api.post(f"{path}/cancel"), 409, "operation_in_progress")

    @pytest.mark.rule("capture.in_time", "doubt.pending")
    @pytest.mark.parametrize(("mode", "end"), [("pending", "captured"), ("pending_then_failed", "voided")])
    def test_that_is_accepted_is_only_looked_up_and_counts_even_after_the_deadline(
        self, held: Checkout, without_waiting: None, monkeypatch: pytest.MonkeyPatch, mode: str, end: str
    ) -> None:
        break_down("capture", mode)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        Call.objects.filter(kind="capture").update(settles_at=clock.now() + timedelta(hours=1))
        calls = overhear(monkeypatch)
        make_late(held)
        for _ in range(3):
            pump()
            tasks.expire_due()
        held.refresh_from_db()
        assert held.status == "authorized" and {verb for verb, _ in calls} == {"look_up"}
        assert Operation.objects.get(kind="capture").state == "pending"
        confirm("capture")
        tasks.expire_due()
        pump()
        held.refresh_from_db()
        assert (held.status, Charge.objects.get().state) == (end, end)
        assert events()[1:] == ["checkout.voided"] * (end == "voided") and ledger_proof.find_breaches() == []

    @pytest.mark.rule("doubt.pending")
    def test_that_is_pending_for_ten_minutes_is_reported_once(
        self, held: Checkout, without_waiting: None
    ) -> None:
        break_down("capture", "pending_for_ever")
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        operation = Operation.objects.get(kind="capture")
        pass_time(operation, minutes=9)
        pump()
        assert not Discrepancy.objects.exists()
        pass_time(operation, minutes=1)
        pump()
        pump()
        found = Discrepancy.objects.get()
        assert (found.kind, found.operation) == ("capture_pending_too_long", operation)

    def test_that_is_pending_stays_pending_if_the_look_up_fails(
        self, held: Checkout, without_waiting: None
    ) -> None:
        break_down("capture", "pending_for_ever")
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        break_down("look_up", "down")
        pump()
        assert Operation.objects.get(kind="capture").state == "pending"

    def test_of_money_that_was_taken_in_the_dashboard_is_a_success(self, api: Api, held: Checkout) -> None:
        break_down("capture", "already_captured")
        answer = api.post(f"checkouts/{held.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")
        make_late(held)
        tasks.expire_due()
        assert Charge.objects.get().state == "captured" and ledger_proof.find_breaches() == []

    def test_of_taken_money_does_not_fail_while_the_look_up_is_down(self, api: Api, held: Checkout) -> None:
        break_down("capture", "already_captured")
        break_down("look_up", "down")
        refused(api.post(f"checkouts/{held.pk}/capture"), 504, "outcome_unknown")
        make_late(held)
        tasks.expire_due()
        pump()
        held.refresh_from_db()
        assert (held.status, Payment.objects.get().status) == ("captured", "captured")
        assert ledger_proof.find_breaches() == []

    @pytest.mark.rule("capture.provider_refused")
    def test_that_is_refused_says_why(self, api: Api, held: Checkout) -> None:
        Charge.objects.update(state="voided")
        answer = api.post(f"checkouts/{held.pk}/capture")
        refused(answer, 502, "provider_error")
        assert answer.json()["error"]["details"] == [{"reason": "already_voided"}]


class TestARelease:
    def test_that_is_pending_is_looked_up_and_not_sent_again(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        break_down("void", "pending")
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "pending"
        calls = overhear(monkeypatch)
        confirm("void")
        assert {verb for verb, _ in calls} == {"look_up"}
        assert (Payment.objects.get().status, Charge.objects.get().state) == ("voided", "voided")

    @pytest.mark.rule("lapse.release")
    def test_that_is_refused_for_a_passing_reason_is_tried_again(self, held: Checkout) -> None:
        break_down("void", "void_refused_once")
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        tasks.finish_operations()
        again = Operation.objects.get(kind="void", ended_at=None)
        assert again.state == "planned" and Charge.objects.get().state == "held"
        pump()
        assert (Payment.objects.get().status, Charge.objects.get().state) == ("voided", "voided")
        assert not Discrepancy.objects.exists()

    @pytest.mark.rule("money.settled")
    def test_that_is_refused_repeatedly_is_reported_once_until_it_succeeds(self, held: Checkout) -> None:
        break_down("void", "void_refused", times=9)
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        for _ in range(6):
            pump()
        found = Discrepancy.objects.get()
        assert (found.kind, found.subject, found.closed_at) == ("void_refused", held.payment_id, None)
        break_down("void", "void_refused", times=0)
        pump()
        found.refresh_from_db()
        assert found.closed_at is not None and found.note == "Nothing is held any more."
        assert Payment.objects.get().status == "voided"


class TestAnErrorThatIsRepeatedUnderItsKey:
    @pytest.mark.parametrize("mode", ["replayed_500", "done_replayed_500"])
    def test_is_looked_up_and_the_capture_succeeds_in_time(self, held: Checkout, mode: str) -> None:
        break_down("capture", mode)
        break_down("look_up", "down")
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        for _ in range(4):
            pump()
        held.refresh_from_db()
        assert (held.status, Charge.objects.get().state) == ("captured", "captured")
        assert ledger_proof.find_breaches() == [] and not Discrepancy.objects.exists()

    def test_is_looked_up_even_if_the_first_call_got_no_response(self, captured: Checkout) -> None:
        break_down("refund", "down")
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        pump()
        break_down("refund", "done_replayed_500")
        for _ in range(4):
            pump()
        captured.refresh_from_db()
        assert captured.status == "refunded" and ledger_proof.find_breaches() == []

    @pytest.mark.rule("doubt.old_key")
    def test_gives_the_capture_a_new_key_after_a_first_call_without_a_response(self, held: Checkout) -> None:
        """The capture is sent under two keys, but the hold is captured only once."""
        break_down("capture", "down")
        break_down("look_up", "down")
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        break_down("capture", "replayed_500")
        for _ in range(4):
            pump()
        held.refresh_from_db()
        assert (held.status, Charge.objects.get().state) == ("captured", "captured")
        assert ledger_proof.find_breaches() == [] and not Discrepancy.objects.exists()

    def test_is_not_looked_up_for_a_new_key_past_the_deadline(self, held: Checkout) -> None:
        break_down("capture", "replayed_500")
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        pump()
        make_late(held)
        pump()
        pump()
        held.refresh_from_db()
        assert (held.status, Charge.objects.get().state) == ("voided", "voided")
