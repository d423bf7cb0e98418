"""How long the service uses an idempotency key at the provider, and when a new key replaces it.

A refund reaches the card only once, even if the provider carries out an earlier call late.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkout import captures, refunds
from checkout.models import Checkout
from checkout.remedies import settling_outside
from checkout.remedies.status_check import NotAllowed
from checkout.restore import repair
from config.lib import clock
from payments import planning
from payments.models import Operation
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Call, Charge
from tests import mates, outside
from tests.factories import CAUSE
from tests.outages import break_down, pass_time, pump
from tests.restoring import Backup

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven"), pytest.mark.rule("doubt.old_key")]


@pytest.fixture
def reimbursement(unpaid: Checkout, pay: Callable[..., Checkout]) -> Operation:
    """Return a planned refund of £20 to the lead's card, which was charged £90.

    The charge is large enough for two such refunds, so the bank would carry out both if they had different keys.
    """
    (share,) = mates.split(unpaid, 2000)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    mates.pay(share)
    capture = Operation.objects.get(kind="capture", payment__subject=share.pk)
    mates.finish(capture)
    return Operation.objects.select_related("payment").get(share_uuid=share.pk, state="planned")


def carry_out_late(refund: Operation) -> None:
    """Make the bank carry out the first call now, long after it was sent."""
    bank.refund(key=refund.pk, payment=refund.payment_id, amount=refund.amount)


def settled_refunds(refund: Operation) -> int:
    """Let all refunds settle, and return the amount that was refunded to the card."""
    for _ in range(4):
        pump()
    bank.look_up(key=refund.pk, payment=refund.payment_id, kind="refund")
    return Charge.objects.get(payment=refund.payment_id).refunded_amount


def keys(refund: Operation) -> list[Operation]:
    return list(planning.attempts_at_same_part(refund).order_by("created_at"))


def test_refund_that_waited_for_a_day_keeps_its_key_after_its_first_timeout(reimbursement: Operation) -> None:
    """A key's age counts from the first call that uses it, not from the time when the refund was planned."""
    pass_time(reimbursement, hours=23, minutes=2)
    break_down("refund", "down")
    for _ in range(3):
        pump()
    carry_out_late(reimbursement)
    assert settled_refunds(reimbursement) == 2000
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk]


@pytest.mark.parametrize("silence_first", [False, True])
def test_replayed_500s_prove_nothing(reimbursement: Operation, silence_first: bool) -> None:
    if silence_first:
        break_down("refund", "down")
        pump()
    break_down("refund", "replayed_500")
    for _ in range(6):
        pump()
    (kept,) = keys(reimbursement)
    assert (kept.pk, kept.state) == (reimbursement.pk, "unknown")
    carry_out_late(reimbursement)
    assert settled_refunds(reimbursement) == 2000
    assert [refund.state for refund in keys(reimbursement)] == ["succeeded"]


def test_accepted_refund_that_the_provider_no_longer_knows_keeps_its_key(reimbursement: Operation) -> None:
    pump()
    kept = Call.objects.get(reference=reimbursement.pk)
    Call.objects.filter(pk=kept.pk).delete()
    facts = {"state": "pending", "ended_at": None, "next_attempt_at": mates.LONG_AGO}
    Operation.objects.filter(pk=reimbursement.pk).update(**facts)
    mates.finish(reimbursement)
    kept.save(force_insert=True)
    assert settled_refunds(reimbursement) == 2000
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk]


def test_new_key_waits_for_the_old_key_to_expire_and_an_hour_after_the_last_call(
    reimbursement: Operation,
) -> None:
    break_down("refund", "replayed_500")
    pump()
    pass_time(reimbursement, hours=20)
    pump()
    pass_time(reimbursement, hours=5)
    for _ in range(3):
        pump()  # the refund was first sent a day ago, so the pump only looks it up
    assert [refund.attempts for refund in keys(reimbursement)] == [5]
    pass_time(reimbursement, hours=19, minutes=59)
    pump()
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk]
    pass_time(reimbursement, minutes=2)
    break_down("look_up", "not_vouched")
    pump()
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk], "nobody vouches"
    assert settled_refunds(reimbursement) == 2000
    old, new = keys(reimbursement)
    assert (old.reason, new.state) == ("new_key", "succeeded")


def test_reimbursement_in_doubt_does_not_hold_up_the_rest_of_a_refund(
    unpaid: Checkout, reimbursement: Operation
) -> None:
    """The reimbursement of £20 is in doubt for a day, but the lead gets the other £70 at once."""
    break_down("refund", "replayed_500")
    pump()
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    assert settled_refunds(reimbursement) == 7000
    assert mates.borne(unpaid) == {"4242": 2000, "4444": 0}
    pass_time(reimbursement, hours=50)
    assert settled_refunds(reimbursement) == 9000
    assert mates.borne(unpaid) == {"4242": 0, "4444": 0}


@pytest.mark.rule("doubt.refusal")
class TestRefusalThatNamesNoRefund:
    """After the provider has refused a call, it has no refund and stores no response for the key."""

    def test_leaves_an_earlier_call_open_until_its_key_has_ended(self, reimbursement: Operation) -> None:
        self.refuse_the_second_sending()
        (kept,) = keys(reimbursement)
        assert (kept.state, kept.reason) == ("unknown", "invalid_request")
        with pytest.raises(NotAllowed, match=r"failed or was returned"):
            settling_outside.settle_outside(reimbursement.pk, note="Cash", cause=CAUSE)
        carry_out_late(reimbursement)
        assert settled_refunds(reimbursement) == 2000
        assert [refund.state for refund in keys(reimbursement)] == ["succeeded"]

    def test_gets_a_new_key_once_no_earlier_call_can_be_carried_out(self, reimbursement: Operation) -> None:
        self.refuse_the_second_sending()
        pass_time(reimbursement, hours=26)
        assert settled_refunds(reimbursement) == 2000
        assert [refund.reason for refund in keys(reimbursement)] == ["new_key", ""]

    def test_is_tried_again_after_the_usual_gap_if_it_was_sent_once(self, reimbursement: Operation) -> None:
        break_down("refund", "not_accepted")
        pump()
        refused, again = keys(reimbursement)
        assert refused.ended_at is not None
        assert again.next_attempt_at == refused.ended_at + timedelta(days=1)

    def refuse_the_second_sending(self) -> None:
        break_down("refund", "down")
        pump()
        pass_time(Operation.objects.get(state="unknown"), seconds=1)
        break_down("refund", "not_accepted")
        pump()


@pytest.mark.usefixtures("posted")
class TestNewKey:
    def test_is_for_the_amount_that_the_card_is_owed_when_the_key_is_created(
        self, unpaid: Checkout, reimbursement: Operation
    ) -> None:
        """Before the new key is created, staff refund £85 of the lead's £90 in the dashboard, so only £5 is owed."""
        break_down("refund", "replayed_500")
        pump()
        outside.refund_outside(reimbursement.payment, 8500)
        pass_time(reimbursement, hours=50)
        assert settled_refunds(reimbursement) == 9000
        ends = {(refund.amount, refund.reason or refund.state) for refund in keys(reimbursement)}
        assert ends == {(2000, "new_key"), (2000, "withdrawn"), (500, "succeeded")}

    def test_is_not_made_while_a_dispute_is_open(self, unpaid: Checkout, reimbursement: Operation) -> None:
        break_down("refund", "replayed_500")
        pump()
        outside.dispute(reimbursement.payment)
        pass_time(reimbursement, hours=50)
        assert settled_refunds(reimbursement) == 0
        old, new = keys(reimbursement)
        assert (old.reason, new.reason) == ("new_key", "withdrawn")


def test_restored_database_does_not_know_when_the_refund_was_last_sent(reimbursement: Operation) -> None:
    """The refund might have been sent again after the backup, so the provider might still carry it out."""
    break_down("refund", "down")
    pump()
    pass_time(reimbursement, hours=26)
    backup = Backup()
    backup.restore()
    repair.repair(clock.now() - timedelta(hours=25))
    for _ in range(3):
        pump()
    carry_out_late(reimbursement)
    assert settled_refunds(reimbursement) == 2000
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk]


class TestTheSending:
    def test_that_is_recorded_is_never_earlier_than_the_call(self, reimbursement: Operation) -> None:
        assert (reimbursement.first_sent_at, reimbursement.last_sent_at) == (None, None)
        before = clock.now()
        pump()
        sent = keys(reimbursement)[0]
        arrived_at = Call.objects.get(reference=sent.pk).created_at
        assert sent.first_sent_at is not None and sent.last_sent_at is not None
        assert before <= sent.first_sent_at <= arrived_at <= sent.last_sent_at
        assert sent.last_sent_at - sent.first_sent_at <= timedelta(seconds=11)

    def test_is_not_recorded_by_a_look_up(self, reimbursement: Operation) -> None:
        break_down("refund", "down")
        pump()
        pass_time(reimbursement, hours=24)
        before = keys(reimbursement)[0]
        pump()
        assert keys(reimbursement)[0].last_sent_at == before.last_sent_at
