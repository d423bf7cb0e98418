"""Money goes out once, however late an earlier call is carried out: the two ages of an idempotency key."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkout import captures
from checkout.models import Checkout
from checkout.restore import repairing
from config.lib import clock
from payments import planning
from payments.models import Operation
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Call, Charge
from tests import mates
from tests.factories import CAUSE
from tests.outages import break_down, pass_time, pump
from tests.restoring import Backup

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven"), pytest.mark.rule("doubt.old_key")]


@pytest.fixture
def reimbursement(unpaid: Checkout, pay: Callable[..., Checkout]) -> Operation:
    """A planned refund of 2000 of the 9000 on the lead's card: the bank would carry it out a second time."""
    (share,) = mates.split(unpaid, 2000)
    captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
    mates.pay(share)
    capture = Operation.objects.get(kind="capture", payment__subject=share.pk)
    mates.finish(capture)
    return Operation.objects.select_related("payment").get(share_uuid=share.pk, state="planned")


def carry_out_late(refund: Operation) -> None:
    """Let the bank carry out the first call at last, whatever it answered then."""
    bank.refund(key=refund.pk, payment=refund.payment_id, amount=refund.amount)


def given_back(refund: Operation) -> int:
    """Return what the card has got back when everything has settled."""
    for _ in range(4):
        pump()
    bank.look_up(key=refund.pk, payment=refund.payment_id, kind="refund")
    return Charge.objects.get(payment=refund.payment_id).refunded_amount


def keys(refund: Operation) -> list[Operation]:
    return list(planning.parts_like(refund).order_by("created_at"))


def test_refund_that_waited_for_a_day_keeps_its_key_after_its_first_timeout(reimbursement: Operation) -> None:
    """The time that it was planned says nothing about when it was sent."""
    pass_time(reimbursement, hours=23, minutes=2)
    break_down("refund", "down")
    for _ in range(3):
        pump()
    carry_out_late(reimbursement)
    assert given_back(reimbursement) == 2000
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
    assert given_back(reimbursement) == 2000
    assert [refund.state for refund in keys(reimbursement)] == ["succeeded"]


def test_accepted_refund_that_the_provider_no_longer_knows_keeps_its_key(reimbursement: Operation) -> None:
    pump()
    kept = Call.objects.get(reference=reimbursement.pk)
    Call.objects.filter(pk=kept.pk).delete()
    facts = {"state": "pending", "ended_at": None, "next_attempt_at": mates.LONG_AGO}
    Operation.objects.filter(pk=reimbursement.pk).update(**facts)
    mates.finish(reimbursement)
    kept.save(force_insert=True)
    assert given_back(reimbursement) == 2000
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk]


def test_new_key_waits_for_the_life_of_the_old_one_and_an_hour_after_its_last_sending(
    reimbursement: Operation,
) -> None:
    break_down("refund", "replayed_500")
    pump()
    pass_time(reimbursement, hours=20)
    pump()
    pass_time(reimbursement, hours=5)
    for _ in range(3):
        pump()  # its first sending is a day old: it is only looked up
    assert [refund.attempts for refund in keys(reimbursement)] == [5]
    pass_time(reimbursement, hours=19, minutes=59)
    pump()
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk]
    pass_time(reimbursement, minutes=2)
    break_down("look_up", "not_vouched")
    pump()
    assert [refund.pk for refund in keys(reimbursement)] == [reimbursement.pk], "nobody vouches"
    assert given_back(reimbursement) == 2000
    old, new = keys(reimbursement)
    assert (old.reason, new.state) == ("new_key", "succeeded")


def test_restored_database_does_not_know_the_last_sending(reimbursement: Operation) -> None:
    """The refund was sent again in the lost time, and that call is on its way."""
    break_down("refund", "down")
    pump()
    pass_time(reimbursement, hours=26)
    backup = Backup()
    backup.restore()
    repairing.repair(clock.now() - timedelta(hours=25))
    for _ in range(3):
        pump()
    carry_out_late(reimbursement)
    assert given_back(reimbursement) == 2000
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
