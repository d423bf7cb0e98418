from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django.fixtures import Settings

from checkout import ending, finishing, refunds, sharing, splitting, tasks, transitions
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.proof import proving
from checkout.states import SHARE_ALLOWED, MoveRefused, ShareStatus, Status
from config.lib import clock
from payments import due, ledger
from payments.models import Discrepancy, Merchant, Operation, Payment
from payments.provider import Verdict
from payments.providers.sandbox import fault_injection, settling
from payments.providers.sandbox.models import CardToken, Charge
from tests import factories, mates
from tests.factories import CAUSE, CustomerFactory, make_late

pytestmark = pytest.mark.django_db
ACCOUNT_CLOSED = "4000000000005126"  # the refund fails later
CHALLENGED = "4000002500003155"
LOST_ANSWER = "4000000000006975"  # the capture happens, its answer is lost


@pytest.fixture(autouse=True)
def _proven() -> Iterator[None]:
    """Whatever happens, the ledger is proven."""
    yield
    assert proving.breaches() == []


@pytest.fixture
def shares(unpaid: Checkout, pay: Callable[..., Checkout]) -> list[PaymentRequest]:
    """£90.00, captured: Finn is asked for £20.00, Amy for £30.00; £40.00 stay with Lea."""
    asked = mates.split(unpaid, 2000, 3000)
    pay(unpaid)
    transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    return [PaymentRequest.objects.get(pk=share.pk) for share in asked]


@pytest.fixture
def order(unpaid: Checkout, shares: list[PaymentRequest]) -> Checkout:
    return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=unpaid.pk)


def borne(order: Checkout) -> dict[str, int]:
    """What each card has paid and not got back, by last 4."""
    payments = Payment.objects.filter(checkout_uuid=order.pk).values_list("pk", flat=True)
    rows = Charge.objects.filter(payment__in=list(payments), state="captured").select_related("token")
    return {row.token.last4: row.amount - row.refunded_amount for row in rows}


def give_back(order: Checkout) -> Refund:
    return refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE).refund


class TestSplit:
    @pytest.mark.rule("split.shares")
    def test_leaves_the_rest_to_the_lead(self, unpaid: Checkout) -> None:
        assert [(share.position, share.amount, share.status) for share in mates.split(unpaid, 1, 8999)] == [
            (2, 1, "draft"),
            (3, 8999, "draft"),
        ]
        unpaid.refresh_from_db()
        assert unpaid.people == 3

    @pytest.mark.parametrize("amounts", [[9001], [4500, 4501], [9000] * 2])
    def test_that_is_more_than_the_order_is_refused(self, unpaid: Checkout, amounts: list[int]) -> None:
        with pytest.raises(splitting.DoesNotAddUp) as refused:
            mates.split(unpaid, *amounts)
        assert refused.value.excess == sum(amounts) - 9000
        assert not unpaid.payment_requests.exists()

    @pytest.mark.rule("split.shares")
    @pytest.mark.parametrize("amounts", [[0], [-1, 5], [1] * 20])
    def test_of_nothing_or_between_too_many_is_refused(self, unpaid: Checkout, amounts: list[int]) -> None:
        with pytest.raises(ValueError, match="mates"):
            mates.split(unpaid, *amounts)

    @pytest.mark.rule("share.link")
    def test_makes_links_that_nobody_can_guess(self, unpaid: Checkout) -> None:
        one, other = mates.split(unpaid, 1000, 1000)
        assert len(one.token) == 22 and one.token != other.token
        with connection.cursor() as cursor:
            cursor.execute("SELECT token FROM checkout_paymentrequest")
            assert not {row[0] for row in cursor.fetchall()} & {one.token, other.token}


class TestLinks:
    @pytest.mark.rule("share.opens")
    def test_open_with_the_capture_for_two_weeks(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        assert [share.status for share in shares] == ["open", "open"]
        assert order.captured_at and shares[0].expires_at == order.captured_at + timedelta(days=14)

    @pytest.mark.rule("share.opens")
    def test_are_drafts_while_it_is_held(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        share, _ = mates.split(unpaid, 1000, 1000)
        pay(unpaid)
        with pytest.raises(sharing.ShareNotOpen):
            mates.pay(share)

    @pytest.mark.rule("share.ends")
    @pytest.mark.parametrize("end", ["cancelled unpaid", "cancelled held", "lapsed", "expired"])
    def test_end_with_an_order_that_is_not_captured(
        self, unpaid: Checkout, pay: Callable[..., Checkout], end: str
    ) -> None:
        share, _ = mates.split(unpaid, 1000, 1000)
        if end in ("cancelled held", "lapsed"):
            unpaid = pay(unpaid)
        if end.startswith("cancelled"):
            transitions.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        else:
            make_late(unpaid)
            ending.expire_due(Status(unpaid.status), limit=10)
        assert mates.settled(share) == "cancelled"

    @pytest.mark.rule("share.ends")
    def test_end_after_two_weeks(self, shares: list[PaymentRequest]) -> None:
        PaymentRequest.objects.filter(pk=shares[0].pk).update(expires_at=clock.now())
        tasks.end_links()
        assert [mates.settled(share) for share in shares] == ["expired", "open"]
        with pytest.raises(sharing.ShareNotOpen) as refused:
            mates.pay(shares[0])
        assert refused.value.status == "expired"

    @pytest.mark.rule("share.ends")
    def test_that_are_late_are_found_by_whoever_comes_first(self, shares: list[PaymentRequest]) -> None:
        PaymentRequest.objects.filter(pk=shares[0].pk).update(expires_at=clock.now())
        with pytest.raises(sharing.ShareNotOpen):
            mates.pay(shares[0])

    @pytest.mark.rule("share.ended_once")
    def test_are_ended_by_either_side_once(self, shares: list[PaymentRequest]) -> None:
        finn, amy = shares
        assert sharing.decline(finn.pk).status == sharing.decline(finn.pk).status == "declined"
        assert sharing.cancel(amy.pk).status == "cancelled"
        with pytest.raises(sharing.ShareNotOpen):
            sharing.cancel(finn.pk)
        with pytest.raises(sharing.ShareNotOpen):
            mates.pay(amy)


class TestPaying:
    @pytest.mark.rule("reimburse.lead", "share.taken")
    def test_a_share_gives_it_back_to_the_lead(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        assert mates.pay(shares[0]).verdict == Verdict.SUCCEEDED
        assert mates.settled(shares[0]) == "reimbursed"
        assert borne(order) == {"4242": 7000, "4444": 2000}
        order.refresh_from_db()
        assert (order.status, order.refunded_amount) == ("captured", 0)
        assert order.payment and Payment.objects.get(pk=order.payment.pk).status == "captured"

    @pytest.mark.rule("reimburse.lead", "split.full_hold")
    def test_is_owed_to_the_lead_meanwhile(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        mates.pay(shares[0])
        mates.pump(order.pk)
        assert PaymentRequest.objects.get(pk=shares[0].pk).status == "paid"
        assert ledger.balances(order.pk) == {"provider": 11000, "merchant": -9000, "lead": -2000}
        assert proving.breaches() == []

    @pytest.mark.rule("reimburse.delay")
    def test_waits_for_the_delay(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY = timedelta(hours=24)
        mates.pay(shares[0])
        finishing.finish_all_of(order.pk)
        (planned,) = Operation.objects.filter(share_uuid=shares[0].pk)
        share = PaymentRequest.objects.get(pk=shares[0].pk)
        assert share.paid_at and planned.next_attempt_at == share.paid_at + timedelta(hours=24)

    def test_that_waited_for_the_delay_is_in_no_doubt_yet(
        self, order: Checkout, shares: list[PaymentRequest], settings: Settings
    ) -> None:
        settings.REIMBURSEMENT_DELAY, settings.SANDBOX_REFUND_SECONDS = timedelta(hours=24), 60
        mates.pay(shares[0])
        finishing.finish_all_of(order.pk)
        ago = timedelta(hours=25)
        for operation in Operation.objects.filter(share_uuid=shares[0].pk):
            operation.created_at -= ago
            operation.next_attempt_at = operation.created_at
            operation.save()
        finishing.finish_all_of(order.pk)
        assert Operation.objects.get(share_uuid=shares[0].pk).state == "pending"
        assert not Discrepancy.objects.exists()

    def test_by_everybody_leaves_the_lead_with_their_own_part(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        for share, card in zip(shares, (mates.FINNS, mates.AMYS), strict=True):
            mates.pay(share, card)
        assert [mates.settled(share) for share in shares] == ["reimbursed", "reimbursed"]
        assert borne(order) == {"4242": 4000, "4444": 2000, "0005": 3000}

    def test_of_all_there_is_gives_the_lead_everything_back(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 9000)
        pay(unpaid)
        order = transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"
        assert borne(order) == {"4242": 0, "4444": 9000}
        give_back(order)
        assert order.payment and Payment.objects.get(pk=order.payment.pk).status == "captured"
        assert mates.settled(share) == "refunded" and borne(order) == {"4242": 0, "4444": 0}

    def test_with_a_declined_card_leaves_it_open(self, shares: list[PaymentRequest]) -> None:
        assert mates.pay(shares[0], "4000000000000002").verdict == Verdict.DECLINED
        assert mates.settled(shares[0]) == "open"
        assert mates.pay(shares[0]).verdict == Verdict.SUCCEEDED

    @pytest.mark.rule("share.not_the_lead")
    def test_with_the_leads_own_card_releases_it(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        mates.pay(shares[0], "4242424242424242")
        assert mates.settled(shares[0]) == "open"
        refused = Payment.objects.get(subject=shares[0].pk)
        assert (refused.status, refused.decline_reason) == ("voided", "same_card")

    @pytest.mark.rule("share.not_the_lead")
    def test_with_the_leads_own_number_is_refused(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        with pytest.raises(sharing.OwnShare):
            mates.pay(shares[0], mate=order.lead)
        assert (
            mates.settled(shares[0]) == "open" and not Payment.objects.filter(subject=shares[0].pk).exists()
        )

    @pytest.mark.rule("share.one_card")
    def test_twice_at_once_takes_one_card(self, shares: list[PaymentRequest]) -> None:
        mates.pay(shares[0])
        with pytest.raises(transitions.OperationInProgress):
            mates.pay(shares[0], mates.AMYS)
        assert mates.settled(shares[0]) == "reimbursed"
        with pytest.raises(sharing.ShareNotOpen):
            mates.pay(shares[0], mates.AMYS)

    def test_after_a_challenge_was_left_takes_the_other_card(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        assert mates.pay(shares[0], CHALLENGED).verdict == Verdict.NEEDS_ACTION
        assert mates.pay(shares[0]).verdict == Verdict.SUCCEEDED
        assert mates.settled(shares[0]) == "reimbursed"
        assert borne(order) == {"4242": 7000, "4444": 2000}

    def test_survives_a_lost_answer(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        for verb in ("authorize", "capture", "refund"):
            fault_injection.set_fault(verb=verb, mode="done_then_reset", times=1)
        mates.pay(shares[0])
        assert mates.settled(shares[0]) == "reimbursed"
        assert borne(order) == {"4242": 7000, "4444": 2000}

    @pytest.mark.rule("share.taken")
    def test_when_the_order_is_refunded_meanwhile_takes_nothing(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=1)
        mates.pay(shares[0])
        give_back(order)
        assert mates.settled(shares[0]) == "cancelled"
        order.refresh_from_db()
        assert order.status == "refunded" and borne(order) == {"4242": 0}


class TestTheLeadsShare:
    @pytest.mark.rule("reimburse.retry")
    @pytest.mark.rule("money.settled")
    def test_that_cannot_be_given_back_is_tried_again_daily_and_shown_after_three_days(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid, ACCOUNT_CLOSED)
        transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share)
        mates.pump(unpaid.pk, rounds=3)
        assert PaymentRequest.objects.get(pk=share.pk).status == "paid"
        failed, again = Operation.objects.filter(share_uuid=share.pk).order_by("created_at")
        assert failed.ended_at and again.next_attempt_at and again.state == "planned"
        assert again.next_attempt_at == again.created_at == failed.ended_at + timedelta(days=1)
        assert not Discrepancy.objects.exists()
        ago = clock.now() - timedelta(days=3)
        PaymentRequest.objects.filter(pk=share.pk).update(paid_at=ago)
        mates.pump(unpaid.pk, rounds=2)
        told = Discrepancy.objects.get()
        assert (told.kind, told.closed_at) == ("share_not_reimbursed", None)
        CardToken.objects.filter(last4="5126").update(last4="4242")
        mates.pump(unpaid.pk, rounds=2)
        told.refresh_from_db()
        assert told.closed_at is not None and told.note == "The lead has got it."

    def test_does_not_wait_for_another_that_is_tried_again_tomorrow(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        finishing.finish_all_of(order.pk)
        tomorrow = clock.now() + timedelta(days=1)
        Operation.objects.filter(share_uuid=shares[0].pk).update(next_attempt_at=tomorrow)
        mates.pay(shares[1], mates.AMYS)
        finishing.finish_all_of(order.pk)
        amys = Operation.objects.get(share_uuid=shares[1].pk)
        assert due.oldest(clock.now()) == amys.next_attempt_at
        finishing.finish_all_of(order.pk)
        states = Operation.objects.filter(share_uuid__isnull=False).values_list("share_uuid", "state")
        assert dict(states) == {shares[0].pk: "planned", shares[1].pk: "pending"}


class TestRefund:
    @pytest.mark.rule("refund.same_cards")
    def test_goes_back_to_each_card_that_bore_it(self, order: Checkout, shares: list[PaymentRequest]) -> None:
        mates.pay(shares[0])
        mates.settled(shares[0])
        refund = give_back(order)
        assert [mates.settled(share) for share in shares] == ["refunded", "cancelled"]
        assert borne(order) == {"4242": 0, "4444": 0}
        legs = Operation.objects.filter(refund_uuid=refund.pk).values_list("amount", "account", "state")
        assert sorted(legs) == [(2000, "merchant", "succeeded"), (7000, "merchant", "succeeded")]
        order.refresh_from_db()
        assert (order.status, order.refunded_amount) == ("refunded", 9000)
        assert set(ledger.balances(order.pk).values()) == {0}

    @pytest.mark.rule("refund.unreimbursed")
    def test_of_what_the_lead_has_not_got_goes_to_the_mate_and_the_lead_gets_all(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0])
        mates.pump(order.pk)
        refund = give_back(order)
        assert mates.settled(shares[0]) == "refunded"
        legs = Operation.objects.filter(refund_uuid=refund.pk).values_list("amount", "account", "state")
        assert sorted(legs) == [(2000, "lead", "succeeded"), (9000, "merchant", "succeeded")]
        withdrawn = Operation.objects.get(share_uuid=shares[0].pk)
        assert (withdrawn.state, withdrawn.reason, withdrawn.attempts) == ("failed", "withdrawn", 0)
        assert borne(order) == {"4242": 0, "4444": 0} and set(ledger.balances(order.pk).values()) == {0}

    @pytest.mark.rule("refund.waits")
    @pytest.mark.parametrize("comes_back", [True, False])
    def test_waits_for_what_is_on_its_way_to_the_lead(
        self, unpaid: Checkout, pay: Callable[..., Checkout], comes_back: bool, settings: Settings
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid, "4242424242424242" if comes_back else ACCOUNT_CLOSED)
        order = transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        settings.SANDBOX_REFUND_SECONDS = 3600
        mates.pay(share)
        mates.pump(order.pk, rounds=2)
        assert Operation.objects.get(share_uuid=share.pk).state == "pending"
        refund = give_back(order)
        assert not Operation.objects.filter(refund_uuid=refund.pk).exists()
        payments = list(Payment.objects.filter(checkout_uuid=order.pk).values_list("pk", flat=True))
        settings.SANDBOX_REFUND_SECONDS = 0
        settling.advance(payments=payments, seconds=3600)
        mates.pump(order.pk)
        legs = Operation.objects.filter(refund_uuid=refund.pk).values_list("amount", "account")
        expected = (
            [(2000, "merchant"), (7000, "merchant")] if comes_back else [(2000, "lead"), (9000, "merchant")]
        )
        assert sorted(legs) == expected

    @pytest.mark.rule("refund.failed", "share.pauses")
    def test_that_fails_opens_the_links_again_with_the_time_they_lost(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        share, _ = mates.split(unpaid, 2000, 3000)
        pay(unpaid, ACCOUNT_CLOSED)
        order = transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        refund = give_back(order)
        paused = timedelta(hours=5)
        Refund.objects.filter(pk=refund.pk).update(created_at=refund.created_at - paused)
        with pytest.raises(sharing.ShareNotOpen) as refused:
            mates.pay(share)
        assert refused.value.status == "refunding"
        assert mates.settled(share) == "open"
        order.refresh_from_db()
        assert order.status == "captured" and order.captured_at and share.expires_at
        assert share.expires_at - order.captured_at >= timedelta(days=14) + paused

    @pytest.mark.rule("refund.goes_on")
    def test_of_which_a_leg_has_settled_goes_on_until_all_have(
        self, order: Checkout, shares: list[PaymentRequest]
    ) -> None:
        mates.pay(shares[0], ACCOUNT_CLOSED)
        mates.settled(shares[0])
        give_back(order)
        mates.pump(order.pk, rounds=3)
        order.refresh_from_db()
        assert order.status == "refunding" and proving.breaches() == []
        again = Operation.objects.filter(kind="refund", payment__subject=shares[0].pk).latest("created_at")
        assert again.state in ("planned", "pending")
        assert [row.kind for row in Discrepancy.objects.all()] == ["refund_part_failed"]

    def test_that_fails_whole_lets_what_is_owed_go_on_to_the_lead(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid, ACCOUNT_CLOSED)
        order = transitions.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share, ACCOUNT_CLOSED, CustomerFactory.create())
        mates.pump(order.pk)
        assert Payment.objects.filter(subject=share.pk, decline_reason="same_card").exists()


@pytest.mark.rule("money.states")
class TestTheTable:
    @pytest.mark.parametrize("to", [to for to in ShareStatus if ("draft", to) not in SHARE_ALLOWED])
    def test_refuses_what_it_lacks(self, unpaid: Checkout, to: ShareStatus) -> None:
        (share,) = mates.split(unpaid, 2000)
        with pytest.raises(MoveRefused):
            share.move(to)
        if to != "draft":
            with pytest.raises(IntegrityError, match="never goes from"), transaction.atomic():
                PaymentRequest.objects.filter(pk=share.pk).update(status=to)


def test_a_strangers_share_is_no_one_elses(rival: Merchant, shares: list[PaymentRequest]) -> None:
    others = factories.checkout(rival)
    assert not others.payment_requests.exists()
