"""Authorizations in doubt: the payer waits for a minute, and a hold that is found later is released."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from checkout import captures, given_up_cards, states, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib import clock
from config.lib.deadline import Deadline
from payments import open_operations, operations
from payments.models import Discrepancy, Operation
from payments.providers.sandbox.models import Charge
from tests import factories
from tests.factories import CAUSE, make_late
from tests.outages import InDoubt, break_down, events, overhear, pass_time, pump, seen
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven")]
OTHER = "5555555555554444"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, UUID]]:
    return overhear(monkeypatch)


@pytest.fixture
def in_doubt(unpaid: Checkout, pay: Callable[..., Checkout]) -> InDoubt:
    """Pay the checkout. The next `times` authorizations get no clear response."""

    def pay_without_response(mode: str = "down", times: int = 1) -> Operation:
        break_down("authorize", mode, times)
        pay(unpaid)
        return Operation.objects.select_related("payment").get()

    return pay_without_response


class TestAuthorize:
    @pytest.mark.rule("doubt.authorize")
    def test_a_hold_found_while_the_payer_waits_gives_the_merchant_the_full_time(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any]
    ) -> None:
        operation = in_doubt("done_then_reset")
        pass_time(operation, seconds=45)
        before = clock.now()
        pump()
        assert seen(unpaid) == ("authorized", "authorized", "held")
        assert unpaid.authorized_at is not None and unpaid.authorized_at >= before
        assert unpaid.capture_before == unpaid.authorized_at + timedelta(seconds=120)
        assert events() == ["checkout.authorized"]
        assert calls == [("authorize", operation.pk), ("look_up", operation.pk)]

    def test_a_call_that_never_arrived_is_sent_again_under_the_same_key(
        self, unpaid: Checkout, in_doubt: InDoubt, calls: list[Any]
    ) -> None:
        operation = in_doubt(times=2)
        pump()
        assert seen(unpaid) == ("created", "authorizing", "")
        pump()
        assert seen(unpaid) == ("authorized", "authorized", "held")
        assert calls == [(verb, operation.pk) for verb in ("authorize", *("look_up", "authorize") * 2)]

    @pytest.mark.rule("pay.another_card")
    def test_no_other_card_is_accepted_for_a_minute(
        self, unpaid: Checkout, in_doubt: InDoubt, pay: Callable[..., Checkout]
    ) -> None:
        pass_time(in_doubt(), seconds=58)
        with nothing_moves(), pytest.raises(states.OperationInProgress):
            pay(unpaid)

    @pytest.mark.rule("pay.another_card")
    @pytest.mark.parametrize("mode", ["done_then_reset", "down"])
    def test_another_card_is_accepted_after_a_minute_and_the_first_hold_is_released(
        self, unpaid: Checkout, in_doubt: InDoubt, pay: Callable[..., Checkout], mode: str
    ) -> None:
        first = in_doubt(mode)
        pass_time(first, seconds=61)
        paid = pay(unpaid, OTHER)
        assert (paid.status, events()) == ("authorized", ["checkout.authorized"])
        first.payment.refresh_from_db()
        assert first.payment.abandoned_at is not None and paid.payment != first.payment
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        pump()
        pass_time(first, hours=24)
        pump()
        first.payment.refresh_from_db()
        assert first.payment.status == ("voided" if mode == "done_then_reset" else "declined")
        assert [charge.state for charge in Charge.objects.filter(payment=first.payment_id)] == (
            ["voided"] if mode == "done_then_reset" else []
        )
        assert (seen(unpaid), events()) == (("captured",) * 3, ["checkout.authorized"])

    def test_a_hold_found_before_another_card_is_used_is_released_too(
        self, unpaid: Checkout, in_doubt: InDoubt, pay: Callable[..., Checkout]
    ) -> None:
        pass_time(in_doubt("done_then_reset"), seconds=61)
        given_up_cards.allow_another_card(unpaid.pk)
        pump()
        pump()
        assert (seen(unpaid), events()) == (("created", "voided", "voided"), [])
        assert pay(unpaid).status == "authorized"

    @pytest.mark.rule("expiry.open_operation")
    def test_an_unpaid_checkout_still_expires_and_the_hold_is_released(
        self, unpaid: Checkout, in_doubt: InDoubt
    ) -> None:
        operation = in_doubt("done_then_reset")
        make_late(unpaid)
        tasks.expire_due()
        assert seen(unpaid)[0] == "created", "the payer still waits"
        pass_time(operation, seconds=61)
        tasks.expire_due()
        assert seen(unpaid) == ("expired", "authorizing", "held")
        pump()
        pump()
        assert (seen(unpaid), events()) == (("expired", "voided", "voided"), [])

    def test_a_hold_found_while_the_payer_chooses_another_card_is_released(
        self, unpaid: Checkout, in_doubt: InDoubt
    ) -> None:
        asked_about = in_doubt("done_then_reset")
        pass_time(asked_about, seconds=61)
        found = operations.look_up(asked_about)
        given_up_cards.allow_another_card(unpaid.pk)
        factories.record(asked_about, found)
        assert seen(unpaid)[0] == "created"
        pump()
        assert (seen(unpaid), events()) == (("created", "voided", "voided"), [])

    def test_a_late_hold_that_is_recorded_twice_is_released_by_one_void(
        self, unpaid: Checkout, in_doubt: InDoubt
    ) -> None:
        first = in_doubt("done_then_reset")
        pass_time(first, seconds=61)
        given_up_cards.allow_another_card(unpaid.pk)
        found = operations.look_up(first)
        for _ in range(2):
            assert factories.record(first, found).operation.state == "succeeded"
        assert Operation.objects.filter(kind="void").count() == 1


class TestAuthorizationThatNeverArrived:
    @pytest.fixture
    def lost(self, in_doubt: InDoubt) -> Operation:
        """Return an authorization that was sent a minute ago and that the provider cannot find."""
        operation = in_doubt()
        pass_time(operation, seconds=61)
        pump()
        operation.refresh_from_db()
        return operation

    def test_lets_the_payer_pay_again_at_once(
        self, unpaid: Checkout, lost: Operation, pay: Callable[..., Checkout]
    ) -> None:
        assert (lost.state, lost.payment.decline_reason) == ("unknown", "never_arrived")
        assert lost.payment.abandoned_at is not None and open_operations.open_operation(unpaid.pk) is None
        assert (seen(unpaid), events()) == (("created", "authorizing", ""), [])
        assert pay(unpaid).status == "authorized"

    def test_is_looked_up_for_a_day(self, lost: Operation) -> None:
        for span, state in (({"hours": 23, "minutes": 58}, "unknown"), ({"minutes": 2}, "failed")):
            pass_time(lost, **span)
            pump()
            lost.refresh_from_db()
            assert lost.state == state
        assert lost.reason == "never_arrived" and not Discrepancy.objects.exists()

    @pytest.mark.rule("doubt.authorize")
    @pytest.mark.parametrize("mode", ["down", "replayed_500"])
    def test_fails_after_a_day_after_any_kind_of_provider_error(
        self, unpaid: Checkout, in_doubt: InDoubt, mode: str
    ) -> None:
        """After an error, the provider can still carry out the call later. The same is true after no response."""
        operation = in_doubt(mode)
        break_down("authorize", "replayed_500")
        pump()
        for span, end in (({"seconds": 61}, "unknown"), ({"hours": 24}, "failed")):
            pass_time(operation, **span)
            for _ in range(3):
                pump()
            operation.refresh_from_db()
            assert (operation.state, Charge.objects.count(), seen(unpaid)[0]) == (end, 0, "created")
        assert ledger_proof.find_breaches() == [] and not Discrepancy.objects.exists()

    @pytest.mark.parametrize("pays_again", [False, True])
    def test_is_released_if_it_arrives_late(
        self, unpaid: Checkout, lost: Operation, pay: Callable[..., Checkout], pays_again: bool
    ) -> None:
        if pays_again:
            pay(unpaid, OTHER)
        operations.perform(lost, deadline=Deadline.after(8))  # simulate that the lost call arrives now
        late = Charge.objects.get(payment=lost.payment_id)
        assert late.state == "held"
        pump()
        late.refresh_from_db()
        assert (late.state, seen(unpaid)[0]) == ("voided", "authorized" if pays_again else "created")
        assert events() == ["checkout.authorized"] * pays_again
