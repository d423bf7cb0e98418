"""A share's capture that is refused, although an earlier key of the capture might still take the money."""

from collections.abc import Callable
from typing import Any

import pytest

from checkout import captures, mate_shares
from checkout.models import Checkout, LeadNotification, PaymentRequest
from payments.models import Discrepancy, Operation
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import bank, fault_injection
from payments.providers.sandbox.models import Charge
from tests import mates
from tests.factories import CAUSE, CustomerFactory, replace_key

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven"), pytest.mark.rule("doubt.refusal")]


@pytest.fixture
def lost(order: Checkout, shares: list[PaymentRequest]) -> Operation:
    """Return the planned capture of Finn's share. The provider has not answered its only call."""
    mates.pay(shares[0])
    fault_injection.set_fault(verb="capture", mode="down", times=1)
    capture = Operation.objects.select_related("payment").get(kind="capture", payment__subject=shares[0].pk)
    mates.finish(capture)
    capture.refresh_from_db()
    assert capture.state == "unknown"
    return capture


@pytest.fixture
def bank_refuses(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return a function that makes the bank refuse each capture, and call `before_void` before it handles a void."""

    def refuses(before_void: Callable[[], object]) -> None:
        call = fault_injection.call_with_faults

        def answer(verb: str, arguments: dict[str, Any]) -> Outcome:
            if verb == "capture":
                return Outcome(Verdict.FAILED, reason="try_later")
            if verb == "void":
                before_void()
            return call(verb, arguments)

        monkeypatch.setattr(fault_injection, "call_with_faults", answer)

    return refuses


def test_capture_that_an_earlier_call_carries_out_late_pays_the_share(
    lost: Operation, shares: list[PaymentRequest], bank_refuses: Callable[[Callable[[], object]], None]
) -> None:
    replace_key(lost)
    bank_refuses(lambda: bank.capture(key=lost.pk, payment=lost.payment_id))
    assert mates.settled(shares[0]) == "reimbursed"
    assert Charge.objects.get(payment=lost.payment_id).state == "captured"
    assert not Discrepancy.objects.exists()


def test_capture_that_no_call_has_carried_out_opens_the_share_after_the_release(
    lost: Operation, shares: list[PaymentRequest], bank_refuses: Callable[[Callable[[], object]], None]
) -> None:
    replace_key(lost)
    bank_refuses(lambda: None)
    fault_injection.set_fault(verb="void", mode="down", times=1)
    mates.pump(shares[0].checkout_id)
    shares[0].refresh_from_db()
    assert shares[0].status == "paying"
    assert mates.settled(shares[0]) == "open"
    lost.payment.refresh_from_db()
    assert (lost.payment.status, lost.payment.decline_reason) == ("voided", "not_taken")
    assert Charge.objects.get(payment=lost.payment_id).state == "voided"


def test_capture_with_one_key_opens_the_share_at_once(
    lost: Operation, shares: list[PaymentRequest], bank_refuses: Callable[[Callable[[], object]], None]
) -> None:
    Operation.objects.filter(pk=lost.pk).update(first_sent_at=None, last_sent_at=None)
    bank_refuses(lambda: None)
    fault_injection.set_fault(verb="void", mode="down", times=1)
    mates.pump(shares[0].checkout_id)
    shares[0].refresh_from_db()
    assert shares[0].status == "open"


def test_lead_is_informed_about_a_pledge_that_was_released_after_the_refusal(
    unpaid: Checkout, pay: Callable[..., Checkout], bank_refuses: Callable[[Callable[[], object]], None]
) -> None:
    mate_shares.make_lead(unpaid.pk, CustomerFactory.create())
    (share,) = mates.split(unpaid, 2000, everyone_first=True)
    mates.pay(share)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    replace_key(Operation.objects.get(kind="capture", payment__subject=share.pk))
    bank_refuses(lambda: None)
    assert mates.settled(share) == "open"
    assert LeadNotification.objects.get(kind="not_taken").share_uuid == share.pk
