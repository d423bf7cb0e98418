"""A mate claims a share through the group link. The claim reserves the share for a limited time."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection

from checkout import mate_shares
from checkout.group import share_changes, share_claims
from checkout.mate_shares import ShareNotOpen
from checkout.models import Checkout, GroupLink, PaymentRequest
from checkout.states import OperationInProgress
from config.lib import clock
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests import mates
from tests.factories import CAUSE, CustomerFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven", "order")]
ZOE, ADE = "z" * 64, "a" * 64
DECLINED = "4000000000000002"


@pytest.fixture
def zoes(shares: list[PaymentRequest]) -> PaymentRequest:
    """Let Zoe claim a share that has no name, and return the share."""
    return share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe")


def pay(share: PaymentRequest, claim: str = "", card: str = mates.FINNS) -> object:
    token = bank.tokenise(subject=share.pk, number=card)
    return mate_shares.pay(
        share.pk, card=CardUse(token), mate=CustomerFactory.create(), cause=CAUSE, claim=claim
    )


def pass_time(share: PaymentRequest) -> None:
    """Make the claim on the share expire now."""
    PaymentRequest.objects.filter(pk=share.pk).update(claimed_until=clock.now())


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ShareNotOpen) as error:
        call()
    return error.value.status


class TestTheLink:
    @pytest.mark.rule("group.link")
    def test_is_created_with_the_split_and_its_random_token_is_stored_encrypted(
        self, order: Checkout
    ) -> None:
        link = GroupLink.objects.get(checkout=order)
        assert len(link.token) == 22
        with connection.cursor() as cursor:
            cursor.execute("SELECT token FROM checkout_grouplink")
            assert link.token not in cursor.fetchone()[0]

    @pytest.mark.rule("group.link")
    @pytest.mark.usefixtures("acme")
    def test_stays_the_same_when_the_order_is_split_again(self, unpaid: Checkout) -> None:
        fresh = Checkout.objects.create(
            merchant=unpaid.merchant,
            merchant_order_id="again",
            amount=9000,
            currency="GBP",
            created_at=clock.now(),
            updated_at=clock.now(),
            payable_until=clock.now() + timedelta(hours=1),
        )
        mate_shares.split_equally(fresh.pk, 1)
        assert not GroupLink.objects.filter(checkout=fresh).exists()
        for people in (3, 2, 1, 3):
            mate_shares.split_equally(fresh.pk, people)
        assert GroupLink.objects.filter(checkout=fresh).count() == 1


class TestTake:
    @pytest.mark.rule("group.kept")
    def test_reserves_a_share_for_three_minutes(self, zoes: PaymentRequest) -> None:
        assert zoes.claimed_until is not None
        left = zoes.claimed_until - clock.now()
        assert timedelta(minutes=2, seconds=50) < left <= share_claims.AT_FIRST

    @pytest.mark.rule("group.kept")
    def test_by_a_signed_in_mate_reserves_the_share_for_fifteen_minutes(
        self, shares: list[PaymentRequest]
    ) -> None:
        taken = share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe", is_signed_in=True)
        assert taken.claimed_until is not None
        left = taken.claimed_until - clock.now()
        assert share_claims.SIGNED_IN - timedelta(seconds=10) < left <= share_claims.SIGNED_IN

    @pytest.mark.rule("group.taken")
    def test_by_two_mates_reserves_the_share_for_the_first(self, zoes: PaymentRequest) -> None:
        assert refused(lambda: share_claims.claim_share(zoes.pk, claim=ADE, name="Ade")) == "kept"
        zoes.refresh_from_db()
        assert (zoes.claim_digest, zoes.shown_name) == (ZOE, "Zoe")

    @pytest.mark.rule("group.kept")
    def test_again_by_the_same_browser_does_not_extend_the_reservation(self, zoes: PaymentRequest) -> None:
        again = share_claims.claim_share(zoes.pk, claim=ZOE, name="Zoe")
        assert again.claimed_until == zoes.claimed_until

    @pytest.mark.rule("group.one_share")
    def test_of_another_share_releases_the_first_share(
        self, zoes: PaymentRequest, shares: list[PaymentRequest]
    ) -> None:
        share_claims.claim_share(shares[1].pk, claim=ZOE, name="Zoe")
        assert share_claims.claim_share(zoes.pk, claim=ADE, name="Ade").shown_name == "Ade"

    @pytest.mark.rule("group.one_share")
    def test_of_another_while_the_first_is_paid_is_refused(
        self, zoes: PaymentRequest, shares: list[PaymentRequest]
    ) -> None:
        pay(zoes, ZOE)
        with pytest.raises(OperationInProgress):
            share_claims.claim_share(shares[1].pk, claim=ZOE, name="Zoe")
        shares[1].refresh_from_db()
        assert shares[1].claim_digest == ""

    @pytest.mark.rule("group.name")
    def test_of_a_share_without_a_name_asks_for_one(self, shares: list[PaymentRequest]) -> None:
        with pytest.raises(share_claims.NameMissing):
            share_claims.claim_share(shares[0].pk, claim=ZOE)
        PaymentRequest.objects.filter(pk=shares[0].pk).update(name="Finn")
        assert share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe").shown_name == "Finn"

    @pytest.mark.rule("group.own_link")
    def test_of_a_share_whose_link_was_sent_to_a_number_is_refused(
        self, shares: list[PaymentRequest]
    ) -> None:
        PaymentRequest.objects.filter(pk=shares[0].pk).update(phone="+447700900456")
        assert refused(lambda: share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe")) == "kept"

    @pytest.mark.rule("group.opens")
    @pytest.mark.parametrize("end", ["declined", "refunding", "late"])
    def test_of_a_share_that_cannot_be_paid_is_refused(
        self, order: Checkout, shares: list[PaymentRequest], end: str
    ) -> None:
        if end == "declined":
            mate_shares.decline(shares[0].pk)
        elif end == "refunding":
            mates.give_back(order)
        else:
            PaymentRequest.objects.filter(pk=shares[0].pk).update(expires_at=clock.now())
        refused(lambda: share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe"))
        shares[0].refresh_from_db()
        assert shares[0].claim_digest == ""

    @pytest.mark.rule("group.takes")
    def test_that_the_limit_refuses_writes_nothing(self, shares: list[PaymentRequest]) -> None:
        def refuse() -> None:
            raise RuntimeError

        with pytest.raises(RuntimeError):
            share_claims.claim_share(shares[0].pk, claim=ZOE, name="Zoe", admit=refuse)
        shares[0].refresh_from_db()
        assert shares[0].claim_digest == ""


@pytest.mark.rule("group.kept")
class TestItsTime:
    def test_is_longer_once_signed_in(self, zoes: PaymentRequest) -> None:
        share_claims.extend_claim(zoes.pk, claim=ZOE)
        zoes.refresh_from_db()
        assert zoes.claimed_until and zoes.claimed_until - clock.now() > timedelta(minutes=14)
        assert zoes.shown_name == "Zoe"

    def test_ends_and_the_share_is_free(self, zoes: PaymentRequest) -> None:
        pass_time(zoes)
        assert share_claims.claim_share(zoes.pk, claim=ADE, name="Ade").shown_name == "Ade"
        assert refused(lambda: share_claims.extend_claim(zoes.pk, claim=ZOE)) == "kept"

    def test_is_renewed_after_a_late_sign_in_if_no_one_else_took_the_share(
        self, zoes: PaymentRequest
    ) -> None:
        pass_time(zoes)
        share_claims.extend_claim(zoes.pk, claim=ZOE)
        assert refused(lambda: share_claims.claim_share(zoes.pk, claim=ADE, name="Ade")) == "kept"

    def test_ends_when_the_mate_gives_the_share_up(self, zoes: PaymentRequest) -> None:
        share_claims.release_claim(zoes.pk, claim=ADE)
        assert refused(lambda: share_claims.claim_share(zoes.pk, claim=ADE, name="Ade")) == "kept"
        share_claims.release_claim(zoes.pk, claim=ZOE)
        share_claims.claim_share(zoes.pk, claim=ADE, name="Ade")

    def test_does_not_end_while_a_card_is_being_charged(self, zoes: PaymentRequest) -> None:
        pay(zoes, ZOE)
        pass_time(zoes)
        share_claims.release_claim(zoes.pk, claim=ZOE)
        share_claims.extend_claim(zoes.pk, claim=ZOE)
        assert refused(lambda: share_claims.claim_share(zoes.pk, claim=ADE, name="Ade")) == "paying"
        assert mates.settled(zoes) == "reimbursed"
        assert (zoes.name, zoes.claim_digest, zoes.claim_name) == ("Zoe", "", "")

    def test_still_ends_at_the_same_time_after_a_declined_card(self, zoes: PaymentRequest) -> None:
        pay(zoes, ZOE, DECLINED)
        assert refused(lambda: share_claims.claim_share(zoes.pk, claim=ADE, name="Ade")) == "kept"
        pass_time(zoes)
        share_claims.claim_share(zoes.pk, claim=ADE, name="Ade")

    def test_ends_with_another_name(self, zoes: PaymentRequest) -> None:
        renamed = share_changes.rename(zoes.pk, "Finn")
        assert (renamed.claim_digest, renamed.claim_name, renamed.claimed_until) == ("", "", None)
        assert refused(lambda: share_claims.extend_claim(zoes.pk, claim=ZOE)) == "kept"
        assert share_claims.claim_share(zoes.pk, claim=ADE, name="").shown_name == "Finn"

    @pytest.mark.parametrize(
        ("end", "digest"), [(mate_shares.cancel, ""), (lambda pk: mate_shares.decline(pk, ZOE), ZOE)]
    )
    def test_ends_with_the_share(
        self, zoes: PaymentRequest, end: Callable[[object], PaymentRequest], digest: str
    ) -> None:
        ended = end(zoes.pk)
        assert (ended.claim_digest, ended.claim_name, ended.claimed_until) == (digest, "", None)
        assert refused(lambda: share_claims.extend_claim(zoes.pk, claim=ZOE)) == ended.status

    def test_of_another_browser_does_not_outlive_a_decline_at_the_pay_link(
        self, zoes: PaymentRequest
    ) -> None:
        pass_time(zoes)
        assert mate_shares.decline(zoes.pk, ADE).claim_digest == ""

    def test_begins_again_with_a_change_of_mind(self, zoes: PaymentRequest) -> None:
        mate_shares.decline(zoes.pk, ZOE)
        again = share_changes.reconsider(zoes.pk, claim=ZOE)
        assert again.status == "open" and again.is_reserved_for_another(ADE, clock.now())
        assert share_changes.reconsider(zoes.pk, claim=ZOE).claim_digest == ZOE
        assert refused(lambda: share_changes.reconsider(zoes.pk, claim=ADE)) == "kept"

    def test_does_not_begin_again_if_the_lead_asks_again(self, zoes: PaymentRequest) -> None:
        mate_shares.decline(zoes.pk, ZOE)
        share_changes.ask_again(zoes.pk)
        assert share_claims.claim_share(zoes.pk, claim=ADE, name="Ade").claim_digest == ADE


@pytest.mark.rule("group.pays")
class TestPaying:
    def test_is_possible_only_for_the_mate_who_took_the_share(self, zoes: PaymentRequest) -> None:
        assert refused(lambda: pay(zoes)) == "kept"
        assert refused(lambda: pay(zoes, ADE)) == "kept"
        assert refused(lambda: mate_shares.decline(zoes.pk)) == "kept"
        pay(zoes, ZOE)
        assert mates.settled(zoes) == "reimbursed"

    def test_is_possible_by_the_shares_own_link_once_the_claim_has_ended(self, zoes: PaymentRequest) -> None:
        pass_time(zoes)
        pay(zoes)
        zoes.refresh_from_db()
        assert (zoes.claim_digest, zoes.shown_name) == ("", "")
        assert refused(lambda: share_claims.extend_claim(zoes.pk, claim=ZOE)) == "paying"

    def test_with_another_card_stays_reserved_while_the_first_card_is_unconfirmed(
        self, zoes: PaymentRequest
    ) -> None:
        pay(zoes, ZOE, mates.CHALLENGED)
        pass_time(zoes)
        assert refused(lambda: pay(zoes, ADE)) == "kept"
        pay(zoes, ZOE)
        assert mates.settled(zoes) == "reimbursed"
