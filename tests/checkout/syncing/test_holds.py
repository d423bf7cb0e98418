"""A hold at the provider that differs from our records is reported. An unwanted hold is also released."""

from datetime import timedelta

import pytest
from django.db.models import F

from checkout import cancellations, outcomes, tasks
from checkout.models import Checkout
from checkout.syncing import sync
from config.lib import clock
from payments import provider
from payments.models import Discrepancy, Inquiry, Operation, Payment
from payments.provider import Books, Outcome, Verdict
from payments.providers.sandbox import client
from tests import mates
from tests.factories import CAUSE
from tests.outages import InDoubt, pass_time

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sync.holds")]


def kinds() -> list[str]:
    return list(Discrepancy.objects.values_list("kind", flat=True))


def read(order: Checkout) -> None:
    assert order.payment_id is not None
    sync.sync(order.payment_id)


def test_a_hold_on_a_declined_payment_is_released_and_reported(
    held: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    Payment.objects.update(status="declined")
    read(held)
    void = Operation.objects.get(kind="void")
    assert (void.state, kinds()) == ("planned", ["held_after_refusal"])


def test_a_released_hold_that_is_still_in_the_books_is_reported(
    held: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
    mates.pump(held.pk)
    monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: Books(is_held=True))
    read(held)
    assert kinds() == ["hold_not_released"]


def test_a_hold_that_staff_released_is_reported(held: Checkout) -> None:
    client.call_bank("act_in_dashboard", kind="void", payment=held.payment_id)
    read(held)
    assert kinds() == ["outside_void"]


@pytest.mark.rule("sync.late_holds")
class TestADeclinedCardWithADelayedCall:
    @pytest.fixture
    def declined(self, in_doubt: InDoubt) -> Operation:
        """Return an authorization that was sent twice. The second call was declined, and the first one is delayed."""
        authorization = in_doubt("authorize")
        rows = Operation.objects.filter(pk=authorization.pk)
        rows.update(first_sent_at=F("first_sent_at") - timedelta(seconds=20))
        ids = (authorization.payment.checkout_uuid, authorization.pk)
        outcomes.record_outcome(*ids, Outcome(Verdict.DECLINED), lease=rows.get().lease_token)
        assert Payment.objects.get().status == "declined"
        return authorization

    def ask(self) -> None:
        Inquiry.objects.update(due_at=clock.now())
        tasks.answer_inquiries()

    def test_is_read_each_hour_and_released(
        self, declined: Operation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.ask()
        assert Inquiry.objects.get().due_at <= clock.now() + timedelta(hours=1)
        assert not Operation.objects.filter(kind="void").exists()
        monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: Books(is_held=True))
        self.ask()
        assert (Operation.objects.get(kind="void").state, kinds()) == ("planned", ["held_after_refusal"])

    def test_is_not_read_again_once_the_provider_cannot_carry_out_the_call(self, declined: Operation) -> None:
        pass_time(declined, hours=26)
        self.ask()
        assert not Inquiry.objects.exists()


def test_a_card_that_was_declined_at_once_is_not_read_again(in_doubt: InDoubt) -> None:
    authorization = in_doubt("authorize")
    ids = (authorization.payment.checkout_uuid, authorization.pk)
    outcomes.record_outcome(*ids, Outcome(Verdict.DECLINED), lease=authorization.lease_token)
    assert not Inquiry.objects.exists()
