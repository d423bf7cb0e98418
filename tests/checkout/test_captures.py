"""How a merchant's capture takes the held money, and how long the call can wait."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from django.db import transaction

from checkout import captures
from checkout.models import Checkout
from checkout.states import OperationInProgress
from config.lib import deadline
from config.lib.bulkhead import Bulkhead, Busy
from payments import bulkheads
from payments.models import Merchant, Operation
from tests import factories
from tests.factories import CAUSE, make_late
from tests.outages import InDoubt, break_down, overhear


class TestCapture:
    @pytest.mark.rule("capture.repeat", "capture.takes")
    def test_takes_the_money_once(self, held: Checkout) -> None:
        first = captures.capture(held.merchant, held.pk, cause=CAUSE)
        again = captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert first.status == "captured" and first.captured_at == again.captured_at
        assert factories.balances(held.pk) == {"provider": 9000, "merchant": -9000}
        assert Operation.objects.filter(kind="capture").count() == 1

    @pytest.mark.rule("capture.deadline")
    def test_refuses_a_lapsed_hold(self, held: Checkout) -> None:
        make_late(held)
        with pytest.raises(captures.NotCapturable):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        held.refresh_from_db()
        assert (held.status, held.void_reason, held.voided_at) == (
            "voided",
            "auth_expired",
            held.capture_before,
        )
        assert not Operation.objects.filter(kind="capture").exists()

    def test_refuses_a_part_of_the_amount(self, held: Checkout) -> None:
        with pytest.raises(captures.PartialCaptureNotSupported) as refused:
            captures.capture(held.merchant, held.pk, amount=8999, cause=CAUSE)
        assert refused.value.amount == 9000
        assert captures.capture(held.merchant, held.pk, amount=9000, cause=CAUSE).status == "captured"

    def test_finds_no_checkout_of_another_merchant(self, held: Checkout, rival: Merchant) -> None:
        with pytest.raises(Checkout.DoesNotExist):
            captures.capture(rival, held.pk, cause=CAUSE)
        held.refresh_from_db()
        assert held.status == "authorized"

    def test_refuses_to_run_in_an_open_transaction(
        self, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The intent must be committed before the provider is called, which is impossible in an open transaction."""
        calls = overhear(monkeypatch)
        with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert calls == []


@pytest.mark.rule("capture.eight_seconds")
class TestPatience:
    @pytest.fixture
    def passed(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """Replace the clock that measures deadlines; return its seconds. It advances only while a capture sleeps."""
        seconds = [0.0]

        def sleep(pause: float) -> None:
            assert pause > 0
            seconds[0] += pause

        monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
        monkeypatch.setattr(captures, "time", SimpleNamespace(sleep=sleep))
        return seconds

    @pytest.mark.rule("capture.join")
    def test_with_another_capture_lasts_two_seconds(
        self, held: Checkout, unclear: Operation, passed: list[float]
    ) -> None:
        with pytest.raises(OperationInProgress):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert passed[0] == pytest.approx(2, abs=0.11)

    @pytest.mark.rule("capture.refused")
    def test_does_not_extend_to_an_authorization_of_an_unpaid_checkout(
        self, unpaid: Checkout, in_doubt: InDoubt, passed: list[float]
    ) -> None:
        in_doubt("authorize")
        with pytest.raises(OperationInProgress):
            captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        assert passed == [0]

    def test_with_an_unconfirmed_capture_leaves_time_to_record_the_outcome(
        self, held: Checkout, passed: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        break_down("capture", "pending_for_ever")
        calls = overhear(monkeypatch)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert passed[0] == pytest.approx(4.65, abs=0.16), "3.2 of the eight seconds are left"
        look_ups = [verb for verb, _ in calls][1:]
        assert set(look_ups) == {"look_up"} and len(look_ups) == round(passed[0] / 0.3)

    def test_with_other_captures_leaves_time_for_two_locks(
        self, held: Checkout, passed: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        patience: list[float] = []

        def wait(one: Bulkhead, seconds: float) -> bool:
            patience.append(seconds)
            return False

        def pass_a_second() -> float:
            passed[0] += 1
            return passed[0]

        monkeypatch.setattr(Bulkhead, "wait", wait)
        monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=pass_a_second))
        with ExitStack() as others:
            for _ in range(bulkheads.CAPTURES.slots):
                others.enter_context(bulkheads.CAPTURES.slot()).take()
            with pytest.raises(Busy):
                captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert patience == [1]
