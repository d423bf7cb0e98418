"""In a split order, the lead pays the whole amount, and requests the mates' shares with pay links."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from checkout import authorizations, cancellations, expiry, mate_shares, tasks
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.split import split_amounts
from checkout.split.share_rows import Share
from checkout.states import OperationInProgress, Status
from config.lib import clock
from payments.models import Merchant
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory, make_late
from tests.refusals import nothing_moves

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven")]


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
        with pytest.raises(split_amounts.SharesExceedAmount) as refused:
            mates.split(unpaid, *amounts)
        assert refused.value.excess == sum(amounts) - 9000
        assert not unpaid.payment_requests.exists()

    @pytest.mark.rule("split.shares")
    @pytest.mark.parametrize("amounts", [[0], [-1, 5], [1] * 20])
    def test_with_a_zero_amount_or_too_many_mates_is_refused(
        self, unpaid: Checkout, amounts: list[int]
    ) -> None:
        with pytest.raises(ValueError, match="mates"):
            mates.split(unpaid, *amounts)

    @pytest.mark.rule("share.link")
    def test_is_a_change_that_lists_show_when_it_begins_and_ends(self, unpaid: Checkout) -> None:
        def changed_at() -> datetime:
            return Checkout.objects.values_list("updated_at", flat=True).get()

        was = changed_at()
        lead = CustomerFactory.create()
        mate_shares.make_lead(unpaid.pk, lead)
        mate_shares.split_equally(unpaid.pk, 1, lead=lead.pk)
        assert changed_at() == was
        mate_shares.split_equally(unpaid.pk, 2, lead=lead.pk)
        assert changed_at() > was
        was = changed_at()
        mate_shares.split_equally(unpaid.pk, 1, lead=lead.pk)
        assert changed_at() > was and not PaymentRequest.objects.exists()
        assert Checkout.objects.get().people == 1

    @pytest.mark.rule("pledge.choice")
    def test_opens_no_link_unless_the_lead_wants_everyone_in_first(self, acme: Merchant) -> None:
        order = factories.mixed_checkout(acme)
        splits: list[Callable[[], None]] = [
            lambda: mate_shares.split_equally(order.pk, 2),
            lambda: mate_shares.split(order.pk, [Share(1000)]),
            lambda: mate_shares.split_by_item(order.pk, [("Finn", [1, 0, 0])], [0, 0, 0]),
        ]
        for split in splits:
            split()
            assert order.payment_requests.get().status == "draft"

    @pytest.mark.rule("split.shares")
    def test_equally_leaves_the_remainder_to_the_lead(self, unpaid: Checkout) -> None:
        mate_shares.split_equally(unpaid.pk, 7)
        assert {share.amount for share in unpaid.payment_requests.all()} == {9000 // 7}
        assert mate_shares.equal_share(unpaid, 7) == 9000 // 7

    def test_creates_links_with_random_tokens_that_are_stored_encrypted(self, unpaid: Checkout) -> None:
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
        with pytest.raises(mate_shares.ShareNotOpen):
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
            cancellations.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        else:
            make_late(unpaid)
            expiry.expire_due(Status(unpaid.status), limit=10)
        assert mates.settled(share) == "cancelled"

    @pytest.mark.rule("share.ends")
    def test_end_after_two_weeks(self, shares: list[PaymentRequest]) -> None:
        PaymentRequest.objects.filter(pk=shares[0].pk).update(expires_at=clock.now())
        tasks.end_links()
        assert [mates.settled(share) for share in shares] == ["expired", "open"]
        with pytest.raises(mate_shares.ShareNotOpen) as refused:
            mates.pay(shares[0])
        assert refused.value.status == "expired"

    @pytest.mark.rule("share.ends")
    def test_that_have_expired_are_refused_before_any_sweep(self, shares: list[PaymentRequest]) -> None:
        PaymentRequest.objects.filter(pk=shares[0].pk).update(expires_at=clock.now())
        with pytest.raises(mate_shares.ShareNotOpen):
            mates.pay(shares[0])

    @pytest.mark.rule("share.ended_once")
    def test_can_be_declined_by_the_mate_or_cancelled_by_the_lead(self, shares: list[PaymentRequest]) -> None:
        finn, amy = shares
        assert mate_shares.decline(finn.pk).status == mate_shares.decline(finn.pk).status == "declined"
        assert mate_shares.cancel(amy.pk).status == "cancelled"
        with pytest.raises(mate_shares.ShareNotOpen):
            mate_shares.decline(amy.pk)
        assert mate_shares.cancel(finn.pk).status == "cancelled", "the lead keeps what was refused"
        with pytest.raises(mate_shares.ShareNotOpen):
            mates.pay(amy)


def test_another_merchants_checkout_has_no_shares_of_this_one(
    rival: Merchant, shares: list[PaymentRequest]
) -> None:
    others = factories.checkout(rival)
    assert not others.payment_requests.exists()


class TestTheLead:
    @staticmethod
    def led(customer: Customer) -> list[Checkout]:
        return list(Checkout.objects.filter(lead=customer))

    def test_is_found_by_the_order_that_they_lead(self, unpaid: Checkout) -> None:
        first, second = CustomerFactory.create(), CustomerFactory.create()
        mate_shares.make_lead(unpaid.pk, first)
        assert (self.led(first), self.led(second)) == ([unpaid], [])
        mate_shares.make_lead(unpaid.pk, second)
        assert (self.led(first), self.led(second)) == ([], [unpaid])

    @pytest.mark.rule("pay.lead")
    def test_who_was_replaced_cannot_pay(self, unpaid: Checkout) -> None:
        """Another person signed in while the first person's card page was open."""
        first, second = CustomerFactory.create(), CustomerFactory.create()
        mate_shares.make_lead(unpaid.pk, first)
        token = bank.tokenise(subject=unpaid.pk, number="4242424242424242")
        mate_shares.make_lead(unpaid.pk, second)
        with nothing_moves(), pytest.raises(authorizations.NotTheLead):
            authorizations.authorize(unpaid.pk, card=CardUse(token), lead=first, cause=CAUSE)
        paid = authorizations.authorize(unpaid.pk, card=CardUse(token), lead=second, cause=CAUSE)
        assert paid.verdict == "succeeded"

    @pytest.mark.rule("pay.lead")
    def test_who_was_replaced_cannot_split(self, unpaid: Checkout) -> None:
        """Another person signed in and split the order before the first person's request arrived."""
        first, second = CustomerFactory.create(), CustomerFactory.create()
        for lead in (first, second):
            mate_shares.make_lead(unpaid.pk, lead)
        mate_shares.split(unpaid.pk, [Share(1000)], lead=second.pk)
        for lead_uuid in (first.pk, None):
            with nothing_moves(), pytest.raises(authorizations.NotTheLead):
                mate_shares.split(unpaid.pk, [Share(2000)], lead=lead_uuid)
            with nothing_moves(), pytest.raises(authorizations.NotTheLead):
                mate_shares.split_equally(unpaid.pk, 1, lead=lead_uuid)
        assert [share.amount for share in unpaid.payment_requests.all()] == [1000]

    def test_of_the_sandbox_helper_is_the_last_payer(self, api: Api, unpaid: Checkout) -> None:
        path = f"/api/sandbox/v1/checkouts/{unpaid.pk}/pay"
        for phone, card, status in (
            ("+447700900123", "4000000000000002", 402),
            ("+447700900999", "4242424242424242", 200),
        ):
            headers = api.headers({})
            body = {"card": card, "phone": phone}
            answer = api.client.post(path, body, content_type="application/json", headers=headers)
            assert answer.status_code == status
        unpaid.refresh_from_db()
        assert unpaid.lead is not None and unpaid.lead.phone == "+447700900999"


CHANGES: dict[str, Callable[[UUID], object]] = {
    "make_lead": lambda pk: mate_shares.make_lead(pk, CustomerFactory.create()),
    "split_equally": lambda pk: mate_shares.split_equally(pk, 2),
    "split": lambda pk: mate_shares.split(pk, []),
    "split_by_item": lambda pk: mate_shares.split_by_item(pk, [], []),
    "pay": lambda pk: mate_shares.pay(pk, card=CardUse("tok"), mate=Customer(), cause=CAUSE),
    "decline": mate_shares.decline,
    "expire": mate_shares.expire,
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_refuses_to_run_in_an_open_transaction(unpaid: Checkout, name: str) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        CHANGES[name](unpaid.pk)


@pytest.mark.rule("share.one_card")
def test_share_that_is_being_paid_takes_no_card_even_if_its_payment_is_lost(
    shares: list[PaymentRequest],
) -> None:
    rows = PaymentRequest.objects.filter(pk=shares[0].pk)
    rows.update(status="paying")
    with pytest.raises(OperationInProgress):
        mates.pay(shares[0])
    rows.update(status="open")


class TestLateLinks:
    @pytest.fixture
    def late(self, order: Checkout, shares: list[PaymentRequest]) -> datetime:
        """Return the time at which the link of the first share ends. The other link ends later."""
        at = clock.now() - timedelta(minutes=1)
        PaymentRequest.objects.filter(pk=shares[0].pk).update(expires_at=at)
        for share in shares:
            share.refresh_from_db()
        return at

    def test_end_at_their_time_all_at_once(
        self, order: Checkout, shares: list[PaymentRequest], late: datetime
    ) -> None:
        assert not mate_shares.expire_all_late(order, shares, late - timedelta.resolution)
        assert mate_shares.expire_all_late(order, shares, late)
        assert [PaymentRequest.objects.get(pk=share.pk).status for share in shares] == ["expired", "open"]

    @pytest.mark.rule("share.pauses")
    def test_do_not_end_during_a_refund(
        self, order: Checkout, shares: list[PaymentRequest], late: datetime
    ) -> None:
        order.status = Status.REFUNDING
        assert not mate_shares.expire_all_late(order, shares, late)

    def test_end_only_in_a_transaction_of_their_own(
        self, order: Checkout, shares: list[PaymentRequest], late: datetime
    ) -> None:
        with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
            mate_shares.expire_all_late(order, shares, late)
