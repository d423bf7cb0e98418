"""A failed refund of an amount that is owed to a card is retried for three days. Then an operator decides."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F
from pytest_django.fixtures import Settings

from checkout import captures
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import ledger_proof
from checkout.remedies import sending
from checkout.settling import amounts_owed, cards
from config.lib import clock
from payments.models import Discrepancy, Operation
from payments.providers.sandbox.models import Charge
from tests import mates, outside
from tests.factories import CAUSE
from tests.mates import ACCOUNT_CLOSED, give_back

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven")]


class TestTheLeadsShare:
    @pytest.mark.rule("reimburse.retry")
    @pytest.mark.rule("money.settled")
    def test_that_cannot_be_reimbursed_is_retried_daily_and_reported_after_three_days(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid, ACCOUNT_CLOSED)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share)
        mates.pump(unpaid.pk, rounds=3)
        assert PaymentRequest.objects.get(pk=share.pk).status == "paid"
        failed, again = Operation.objects.filter(share_uuid=share.pk).order_by("created_at")
        assert failed.ended_at and again.next_attempt_at and again.state == "planned"
        assert again.next_attempt_at == again.created_at == failed.ended_at + timedelta(days=1)
        assert not Discrepancy.objects.exists()
        Operation.objects.filter(pk=failed.pk).update(created_at=F("created_at") - timedelta(days=3))
        mates.pump(unpaid.pk, rounds=3)
        told = Discrepancy.objects.get()
        assert (told.kind, told.subject, told.closed_at) == ("share_not_reimbursed", share.pk, None)
        assert not Operation.objects.filter(ended_at=None).exists(), "an operator decides"
        Charge.objects.filter(last4="5126").update(last4="4242")
        sending.send_again(again.pk, cause=CAUSE)
        mates.pump(unpaid.pk, rounds=3)
        told.refresh_from_db()
        assert told.closed_at is not None and told.note == "The card has got it."
        assert PaymentRequest.objects.get(pk=share.pk).status == "reimbursed"


@pytest.mark.usefixtures("posted")
@pytest.mark.parametrize("order", [1, -1])
def test_a_returned_reimbursement_is_not_made_again_when_the_next_share_is_paid(
    unpaid: Checkout, pay: Callable[..., Checkout], order: int
) -> None:
    first, second = mates.split(unpaid, 3000, 3000)[::order]
    captures.capture(unpaid.merchant, pay(unpaid, outside.RETURNS).pk, cause=CAUSE)
    mates.pay(first)
    mates.pump(unpaid.pk, rounds=3)
    outside.settle(unpaid)
    outside.come_back()
    assert outside.returned(unpaid).share_uuid == first.pk
    mates.pay(second, mates.AMYS)
    mates.pump(unpaid.pk, rounds=3)
    made = Operation.objects.filter(purpose="reimbursement").order_by("created_at")
    assert list(made.values_list("share_uuid", "amount")) == [(first.pk, 3000), (second.pk, 3000)]


class TestAPlannedRefund:
    """A planned refund of £20 that is owed to a card."""

    @pytest.mark.parametrize(
        ("amount", "is_by_operator", "fits"),
        [
            (2000, False, True),
            (1999, False, False),
            (2001, False, False),
            (1999, True, True),
            (2001, True, False),
        ],
    )
    def test_matches_the_amount_owed_if_it_has_the_same_amount(
        self, amount: int, is_by_operator: bool, fits: bool
    ) -> None:
        payment, share = uuid4(), uuid4()
        key, at = cards.PartKey(payment, None, share), None if is_by_operator else clock.now()
        want = amounts_owed.AmountOwed(key, 2000, at, cards.Part())
        assert want.is_met_by(Operation(payment_id=payment, share_uuid=share, amount=amount)) == fits

    def test_for_another_share_payment_or_resend_does_not_match(self) -> None:
        payment, share = uuid4(), uuid4()
        want = amounts_owed.AmountOwed(cards.PartKey(payment, None, share), 2000, clock.now(), cards.Part())
        for differs in ({"share_uuid": uuid4()}, {"payment_id": uuid4()}, {"resends_id": uuid4()}):
            facts = {"payment_id": payment, "share_uuid": share, "amount": 2000} | differs
            assert not want.is_met_by(Operation(**facts)), differs


@pytest.mark.rule("reimburse.retry", "refund.goes_on")
@pytest.mark.parametrize(
    ("state", "age", "delay"),
    [
        ("failed", timedelta(0), timedelta(hours=1)),
        ("declined", timedelta(0), timedelta(hours=1)),
        ("failed", timedelta(days=3, seconds=-1), timedelta(0)),
        ("failed", timedelta(days=3), None),
        ("succeeded", timedelta(0), timedelta(0)),
        ("succeeded", timedelta(days=3), timedelta(0)),
    ],
)
def test_amount_is_sent_an_hour_after_a_refused_attempt_and_for_three_days(
    state: str, age: timedelta, delay: timedelta | None
) -> None:
    now = clock.now()
    last = Operation(state=state, created_at=now - age, ended_at=now - age)
    at = amounts_owed._send_time(cards.Part([last]), now, timedelta(hours=1), now)
    assert at == (None if delay is None else now + delay)


def test_refund_whose_sending_a_restore_has_lost_is_tried_again_after_the_usual_gap() -> None:
    """The provider's books say that it refused the refund, but the restored row says that it was never sent."""
    ended_at = clock.now()
    refused = Operation(state="failed", reason="refused", attempts=0, created_at=ended_at, ended_at=ended_at)
    at = amounts_owed._send_time(cards.Part([refused]), ended_at, timedelta(hours=1), ended_at)
    assert at == ended_at + timedelta(hours=1)


@pytest.mark.rule("refund.goes_on")
class TestAPartThatTheCardCannotTake:
    def parts(self, refund: Refund) -> list[Operation]:
        return list(Operation.objects.filter(refund_uuid=refund.pk, amount=2000).order_by("created_at"))

    def test_is_retried_for_three_days_and_reported_once(
        self, unpaid: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0], ACCOUNT_CLOSED)
        mates.pump(unpaid.pk)
        refund = give_back(unpaid)
        for _ in range(4):
            mates.pump(unpaid.pk, rounds=2)
        assert len(self.parts(refund)) > 3
        assert [row.kind for row in Discrepancy.objects.all()] == ["refund_part_failed"]
        ended = Operation.objects.filter(refund_uuid=refund.pk, amount=2000, ended_at__isnull=False)
        ended.update(created_at=F("created_at") - timedelta(days=3))
        mates.pump(unpaid.pk, rounds=2)
        assert {part.state for part in self.parts(refund)} == {"failed"}
        unpaid.refresh_from_db()
        assert unpaid.status == "refunding" and ledger_proof.find_breaches() == []
        assert Discrepancy.objects.count() == 1


class TestAShare:
    @pytest.mark.rule("reimburse.delay")
    def test_is_sent_to_the_lead_no_sooner_after_a_refund_that_failed(
        self, unpaid: Checkout, pay: Callable[..., Checkout], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        (share,) = mates.split(unpaid, 2000)
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(share)
        mates.pump(unpaid.pk)
        share.refresh_from_db()
        assert share.paid_at is not None
        (want,) = amounts_owed.find_reimbursements(
            cards.read_accounts(Checkout.objects.get(pk=unpaid.pk)), clock.now()
        )
        assert (want.amount, want.at) == (2000, share.paid_at + timedelta(hours=24))
        late = clock.now() + timedelta(hours=30)
        (want,) = amounts_owed.find_reimbursements(
            cards.read_accounts(Checkout.objects.get(pk=unpaid.pk)), late
        )
        assert want.at == late
