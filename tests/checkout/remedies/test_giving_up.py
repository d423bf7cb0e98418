"""An operator can give up an operation if the provider vouches that it never arrived, or if its hold is released."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F

from checkout import captures
from checkout.models import Checkout
from checkout.remedies.status_check import NotAllowed
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Operation, Payment
from payments.providers.sandbox import bank, fault_injection
from payments.providers.sandbox.models import Charge
from tests import mates
from tests.checkout.remedies.remedy import NOTE, give_up, refuses
from tests.factories import CAUSE, make_late
from tests.outages import pass_time

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]


class TestGivingUp:
    def test_an_authorization_that_never_arrived(
        self, left_in_doubt: Callable[..., Operation], unpaid: Checkout
    ) -> None:
        operation = left_in_doubt("down")
        reporting.report_operation(operation, kinds.IN_DOUBT_FOR_A_DAY)
        give_up(operation)
        operation.refresh_from_db()
        assert (operation.state, operation.reason) == ("failed", "given_up_by_operator")
        assert (
            Payment.objects.get().status == "declined" and not Operation.objects.filter(kind="void").exists()
        )
        found = Discrepancy.objects.get()
        assert found.closed_at is not None and found.note == NOTE
        refuses(give_up, operation, "not in doubt")

    def test_an_unknown_authorization_is_given_up_after_its_release(
        self, left_in_doubt: Callable[..., Operation]
    ) -> None:
        operation = left_in_doubt("done_then_reset")
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        give_up(operation)
        operation.refresh_from_db()
        assert operation.reason == "given_up_by_operator"
        assert (Charge.objects.get().state, Payment.objects.get().status) == ("voided", "voided")
        assert Operation.objects.get(kind="void").state == "succeeded"

    def test_is_refused_if_the_release_fails(self, left_in_doubt: Callable[..., Operation]) -> None:
        operation = left_in_doubt("done_then_reset")
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        fault_injection.set_fault(verb="void", mode="down", times=1)
        before = Checkout.objects.get().updated_at
        with pytest.raises(NotAllowed, match="only if a void succeeds"):
            give_up(operation)
        operation.refresh_from_db()
        assert (operation.state, Charge.objects.get().state) == ("unknown", "held")
        assert Checkout.objects.get().updated_at > before, "a read names it no more"
        mates.pump(operation.payment.checkout_uuid, rounds=2)
        assert Charge.objects.get().state == "voided", "nobody waits for it: what is found is released"

    @pytest.mark.rule("operator.asks_first")
    def test_is_refused_if_the_provider_says_that_it_succeeded(
        self, left_in_doubt: Callable[..., Operation]
    ) -> None:
        refuses(give_up, left_in_doubt("done_then_reset"), "it succeeded")

    def test_is_refused_while_the_payer_waits(self, left_in_doubt: Callable[..., Operation]) -> None:
        operation = left_in_doubt("down")
        Operation.objects.update(created_at=F("created_at") + timedelta(minutes=4))
        refuses(give_up, operation, "payer still waits")

    def test_a_mates_authorization_frees_the_share(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        fault_injection.set_fault(verb="authorize", mode="down", times=1)
        mates.pay(share)
        operation = Operation.objects.get(kind="authorize", payment__subject=share.pk)
        Operation.objects.filter(pk=operation.pk).update(created_at=F("created_at") - timedelta(minutes=5))
        give_up(operation)
        share.refresh_from_db()
        assert share.status == "open"

    def test_a_capture_that_never_arrived_lets_the_hold_lapse(self, held: Checkout) -> None:
        operation = self._capture_in_doubt(held)
        make_late(held)
        pass_time(operation, hours=26)
        give_up(operation)
        held.refresh_from_db()
        assert (held.status, held.void_reason) == ("voided", "auth_expired")
        mates.pump(held.pk)
        assert Charge.objects.get().state == "voided"

    def test_a_capture_is_refused_before_the_deadline(self, held: Checkout) -> None:
        refuses(give_up, self._capture_in_doubt(held), "still needs this capture")

    def test_a_capture_that_can_still_arrive_is_refused(self, held: Checkout) -> None:
        """The provider does not have the capture yet, but carries it out later."""
        operation = self._capture_in_doubt(held)
        make_late(held)
        refuses(give_up, operation, "could still take the money")
        bank.capture(key=operation.pk, payment=operation.payment_id)
        mates.pump(held.pk)
        held.refresh_from_db()
        assert (held.status, Charge.objects.get().state) == ("captured", "captured")

    @pytest.mark.parametrize(
        ("mode", "words"), [("down", "nothing clear"), ("not_vouched", "does not vouch")]
    )
    def test_a_capture_is_refused_if_the_provider_cannot_rule_it_out(
        self, held: Checkout, mode: str, words: str
    ) -> None:
        operation = self._capture_in_doubt(held)
        make_late(held)
        pass_time(operation, hours=26)
        fault_injection.set_fault(verb="look_up", mode=mode, times=1)
        refuses(give_up, operation, words)

    def test_refunds_and_voids_are_refused(self, stuck: Operation) -> None:
        refuses(give_up, stuck, "Only an authorization or a capture")

    def _capture_in_doubt(self, held: Checkout) -> Operation:
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        fault_injection.set_fault(verb="look_up", mode="down", times=1)
        with pytest.raises(captures.OutcomeUnknown):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        fault_injection.set_fault(verb="look_up", mode="down", times=0)
        return Operation.objects.select_related("payment").get(kind="capture")
