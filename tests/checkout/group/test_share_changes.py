"""Changes to shares: the lead renames a share, requests it again or pays it; a mate withdraws a decline."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkout import mate_shares, refunds
from checkout.group import share_changes
from checkout.models import Checkout, PaymentRequest, ReplacedLink
from config.lib import clock, crypto
from payments.providers.sandbox import client
from tests import mates
from tests.factories import CAUSE
from tests.outside import ask_about, refund_outside

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted", "proven")]
AGAIN = (share_changes.ask_again, share_changes.reconsider)
Verb = Callable[..., PaymentRequest]


@pytest.fixture
def finns(shares: list[PaymentRequest]) -> PaymentRequest:
    return shares[0]


@pytest.fixture
def declined(finns: PaymentRequest) -> PaymentRequest:
    return mate_shares.decline(finns.pk)


def dispute(order: Checkout) -> None:
    client.call_bank("dispute", payment=order.payment_id)
    ask_about(order.payment)


@pytest.mark.rule("share.bends")
class TestANewName:
    def test_is_stored_on_any_share_without_a_payment(self, shares: list[PaymentRequest]) -> None:
        finn, amy = shares
        mate_shares.cancel(amy.pk)
        assert share_changes.rename(finn.pk, "Fionn").name == "Fionn"
        assert share_changes.rename(amy.pk, "").name == ""
        assert len(share_changes.rename(finn.pk, "F" * 60).name) == share_changes.MAX_NAME
        assert mates.settled(finn) == "open" and finn.name == "F" * 30

    def test_is_refused_while_the_share_is_being_paid_and_after_its_payment(
        self, finns: PaymentRequest
    ) -> None:
        mates.pay(finns)
        for status in ("paying", "reimbursed"):
            with pytest.raises(mate_shares.ShareNotOpen) as refused:
                share_changes.rename(finns.pk, "Fionn")
            assert refused.value.status == status
            mates.settled(finns)
        assert finns.name == ""


@pytest.mark.rule("share.bends")
class TestShareThatIsAskedAgain:
    def test_keeps_a_limited_number_of_replaced_links(
        self, finns: PaymentRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(share_changes, "MAX_REPLACED_LINKS", 2)
        digests = []
        for _ in range(4):
            mate_shares.cancel(finns.pk)
            digests.append(PaymentRequest.objects.get(pk=finns.pk).token_digest)
            share_changes.ask_again(finns.pk)
        kept = ReplacedLink.objects.filter(share=finns.pk).order_by("replaced_at")
        assert [row.token_digest for row in kept] == digests[2:]

    @pytest.mark.parametrize("end", [mate_shares.decline, mate_shares.cancel])
    def test_has_a_new_link_and_its_old_link_is_unknown(self, finns: PaymentRequest, end: Verb) -> None:
        end(finns.pk)
        PaymentRequest.objects.filter(pk=finns.pk).update(next_reminder_at=finns.expires_at)
        again = share_changes.ask_again(finns.pk)
        assert (again.status, again.ended_at, again.expires_at) == ("open", None, finns.expires_at)
        assert again.next_reminder_at is None, "nobody has been texted this one"
        assert again.token != finns.token and again.token_digest == crypto.digest(again.token)
        assert not PaymentRequest.objects.filter(token_digest=finns.token_digest).exists()
        mates.pay(again)
        assert mates.settled(again) == "reimbursed"

    def test_twice_keeps_the_link_of_the_first_time(self, declined: PaymentRequest) -> None:
        assert share_changes.ask_again(declined.pk).token == share_changes.ask_again(declined.pk).token

    def test_works_for_a_day_at_least(self, declined: PaymentRequest) -> None:
        PaymentRequest.objects.filter(pk=declined.pk).update(expires_at=clock.now())
        ends_at = share_changes.ask_again(declined.pk).expires_at
        assert ends_at and timedelta(hours=23) < ends_at - clock.now() <= timedelta(hours=24)

    def test_whose_link_has_expired_is_refused(self, finns: PaymentRequest) -> None:
        PaymentRequest.objects.filter(pk=finns.pk).update(expires_at=clock.now())
        with pytest.raises(mate_shares.ShareNotOpen) as refused:
            share_changes.ask_again(finns.pk)
        assert refused.value.status == "expired"


@pytest.mark.rule("share.bends")
class TestAMatesChangeOfMind:
    def test_opens_the_share_by_the_same_link(self, declined: PaymentRequest) -> None:
        for _ in range(2):
            assert share_changes.reconsider(declined.pk).token == declined.token
        mates.pay(declined)
        assert mates.settled(declined) == "reimbursed"

    def test_comes_too_late_when_the_link_has_ended(self, declined: PaymentRequest) -> None:
        PaymentRequest.objects.filter(pk=declined.pk).update(expires_at=clock.now())
        with pytest.raises(mate_shares.ShareNotOpen):
            share_changes.reconsider(declined.pk)

    def test_does_not_reopen_a_share_that_the_lead_keeps(self, declined: PaymentRequest) -> None:
        assert mate_shares.cancel(declined.pk).status == "cancelled"
        with pytest.raises(mate_shares.ShareNotOpen) as refused:
            share_changes.reconsider(declined.pk)
        assert refused.value.status == "cancelled"


@pytest.mark.rule("share.bends")
@pytest.mark.parametrize("verb", AGAIN)
class TestShareCannotBeReopened:
    def test_while_it_is_being_paid_or_after_its_payment(self, finns: PaymentRequest, verb: Verb) -> None:
        mates.pay(finns)
        for _ in range(2):
            with pytest.raises(mate_shares.ShareNotOpen):
                verb(finns.pk)
            mates.settled(finns)

    def test_once_the_order_is_refunded(self, order: Checkout, declined: PaymentRequest, verb: Verb) -> None:
        refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        with pytest.raises(mate_shares.ShareNotOpen):
            verb(declined.pk)

    def test_once_staff_have_refunded_a_part_in_the_dashboard(
        self, order: Checkout, declined: PaymentRequest, verb: Verb
    ) -> None:
        refund_outside(order.payment, 1000)
        with pytest.raises(mate_shares.ShareNotOpen):
            verb(declined.pk)

    def test_while_a_card_is_disputed(self, order: Checkout, declined: PaymentRequest, verb: Verb) -> None:
        dispute(order)
        with pytest.raises(mate_shares.ShareNotOpen):
            verb(declined.pk)
