"""Captures in doubt: what is not an answer, what proves nothing, and what must not stand in anybody's way."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from checkout import refunds, settlement, tasks, transitions
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant, Operation
from payments.provider import Outcome, Verdict
from payments.providers.sandbox import misbehaving
from tests import factories
from tests.checkout.test_doubtful_payments import pump
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.refusals import refused

pytestmark = pytest.mark.django_db
Answer = Callable[[str, Outcome], None]


@pytest.fixture
def bank_answers(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Let the bank answer every call of a verb in one way, and do nothing."""

    def answers(verb: str, outcome: Outcome) -> None:
        call = misbehaving.call

        def answer(asked: str, arguments: dict[str, Any]) -> Outcome:
            return outcome if asked == verb else call(asked, arguments)

        monkeypatch.setattr(misbehaving, "call", answer)

    return answers


def doubt(checkout: Checkout) -> Operation:
    """Let a capture of a held checkout stay without any answer."""
    for verb in ("capture", "look_up"):
        misbehaving.set_fault(verb=verb, mode="down", times=1)
    with pytest.raises(transitions.OutcomeUnknown):
        transitions.capture(checkout.merchant, checkout.pk, cause=CAUSE)
    return Operation.objects.select_related("payment").get(payment__subject=checkout.pk, kind="capture")


class TestACapture:
    def test_that_the_provider_calls_pending_is_in_doubt_and_begun_once(
        self, held: Checkout, bank_answers: Answer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transitions, "JOIN_SECONDS", 0.0)
        bank_answers("capture", Outcome(Verdict.PENDING))
        with pytest.raises(transitions.OutcomeUnknown):
            transitions.capture(held.merchant, held.pk, cause=CAUSE)
        with pytest.raises(transitions.OperationInProgress):
            transitions.capture(held.merchant, held.pk, cause=CAUSE)
        assert Operation.objects.get(kind="capture").state == "unknown"
        make_late(held)
        tasks.keep_deadlines()
        held.refresh_from_db()
        assert held.status == "authorized"

    def test_in_doubt_is_not_decided_by_a_fence_that_is_refused(
        self, held: Checkout, bank_answers: Answer
    ) -> None:
        doubt(held)
        make_late(held)
        bank_answers("void", Outcome(Verdict.FAILED, reason="try_later"))
        pump()
        tasks.keep_deadlines()
        held.refresh_from_db()
        assert (held.status, Operation.objects.get(kind="void").state) == ("authorized", "unknown")

    def test_in_doubt_keeps_the_lease_of_who_is_asking_now(self, held: Checkout) -> None:
        mine, theirs = doubt(held), uuid4()
        Operation.objects.filter(pk=mine.pk).update(lease_token=theirs, lease_until=clock.now())
        settlement.settle(mine, Outcome(Verdict.NOT_FOUND))
        assert Operation.objects.get(pk=mine.pk).lease_token == theirs

    def test_of_what_is_being_refunded_is_refused_also_while_the_refund_is_in_doubt(
        self, api: Api, captured: Checkout
    ) -> None:
        misbehaving.set_fault(verb="refund", mode="down", times=1)
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        tasks.finish_operations()
        assert Operation.objects.get(kind="refund").state == "unknown"
        refused(api.post(f"checkouts/{captured.pk}/capture"), 409, "not_capturable")


class TestThePump:
    def test_lets_lapse_and_expire_what_stands_behind_captures_in_doubt(
        self, acme: Merchant, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tasks, "BATCH", 2)
        for _ in range(2):
            in_doubt = pay(factories.checkout(acme))
            doubt(in_doubt)
            make_late(in_doubt)
        late, unpaid = pay(factories.checkout(acme)), factories.checkout(acme)
        make_late(late)
        make_late(unpaid)
        tasks.keep_deadlines()
        late.refresh_from_db()
        unpaid.refresh_from_db()
        assert (late.status, unpaid.status) == ("voided", "expired")
