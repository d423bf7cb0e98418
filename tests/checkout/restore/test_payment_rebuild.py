"""After a restore, the repair adds the lost refunds, and the lost payments of mates' shares."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

import pytest
from pytest_django.fixtures import Settings

from checkout import captures, mate_shares, refunds
from checkout.group import pledging, share_changes, unit_claims
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.remedies import sending
from checkout.restore import repair
from checkout.split.share_rows import Share
from config.lib import clock
from payments.models import Discrepancy, Operation
from payments.providers.sandbox import client
from payments.providers.sandbox.models import Call
from tests import mates, outside
from tests.checkout.test_pledges import Pledged
from tests.factories import CAUSE
from tests.outages import break_down, pass_time
from tests.outside import balances, come_back, reimburse, returned, settle
from tests.restoring import Backup, anew, borne, nothing_moves_later, repaired

pytestmark = [pytest.mark.django_db, pytest.mark.rule("restore.repair")]
Pay = Callable[..., Checkout]


@pytest.mark.rule("restore.refund")
class TestARefundThatWasLost:
    def test_is_matched_again_when_the_merchant_repeats_its_call(
        self, captured: Checkout, began: datetime
    ) -> None:
        backup = Backup()
        refunds.accept(captured.merchant, captured.pk, ref="r-7", cause=CAUSE)
        settle(captured)
        backup.restore()
        assert anew(captured).status == "captured"
        repaired(began)
        assert anew(captured).status == "refunded"
        accepted = refunds.accept(captured.merchant, captured.pk, ref="r-7", cause=CAUSE)
        assert not accepted.is_new and accepted.refund.merchant_refund_ref == "r-7"
        again = refunds.accept(captured.merchant, captured.pk, ref="r-7", cause=CAUSE)
        assert again.refund.pk == accepted.refund.pk
        with pytest.raises(refunds.NotRefundable):
            refunds.accept(captured.merchant, captured.pk, ref="another", cause=CAUSE)
        nothing_moves_later(captured)

    def test_that_the_bank_has_not_settled_continues(
        self, captured: Checkout, began: datetime, settings: Settings
    ) -> None:
        settings.SANDBOX_REFUND_SECONDS = 60
        backup = Backup()
        refunds.accept(captured.merchant, captured.pk, ref="r-7", cause=CAUSE)
        mates.pump(captured.pk)
        backup.restore()
        repaired(began)
        assert anew(captured).status == "refunding"
        settle(captured)
        assert anew(captured).status == "refunded" and borne() == {"4242": 0}

    @pytest.mark.parametrize("mode", ["not_accepted", "refund_card_closed"])
    def test_after_the_failure_of_an_earlier_refund_replaces_the_earlier_one(
        self, captured: Checkout, began: datetime, mode: str
    ) -> None:
        """In the restored database, the earlier refund is still pending. Only one refund can be pending."""
        refunds.accept(captured.merchant, captured.pk, ref="r-7", cause=CAUSE)
        backup = Backup()
        break_down("refund", mode)
        mates.pump(captured.pk)
        refunds.accept(captured.merchant, captured.pk, ref="r-8", cause=CAUSE)
        settle(captured)
        backup.restore()
        assert anew(captured).status == "refunding"
        repaired(began)
        assert anew(captured).status == "refunded" and borne() == {"4242": 0}
        again = refunds.accept(captured.merchant, captured.pk, ref="r-8", cause=CAUSE)
        assert not again.is_new
        statuses = Refund.objects.order_by("merchant_refund_ref").values_list("merchant_refund_ref", "status")
        assert list(statuses) == [("r-7", "failed"), ("r-8", "settled")]
        nothing_moves_later(captured)

    def test_for_an_order_that_is_already_refunded_is_recorded_as_made_by_staff(
        self, captured: Checkout, began: datetime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A merchant can write any ids into a refund at the provider."""
        refunds.accept(captured.merchant, captured.pk, ref="r-7", cause=CAUSE)
        settle(captured)
        backup = Backup()
        books = client.call_bank("movements", payment=captured.payment_id)
        copied = replace(books.refunds[0], reference="re_2", operation=uuid4(), refund=uuid4())
        forged = replace(books, refunds=[*books.refunds, copied])
        monkeypatch.setitem(client.BANK_CALLS, "movements", lambda payment: forged)
        backup.restore()
        repair.repair(began)
        assert anew(captured).status == "refunded" and Refund.objects.count() == 1
        assert set(Operation.objects.filter(kind="refund").values_list("purpose", flat=True)) == {
            "outside",
            "refund_part",
        }

    @pytest.mark.rule("sync.outside")
    @pytest.mark.parametrize("amount", [1500, 9000])
    def test_that_staff_made_in_the_dashboard_is_recorded_as_made_by_staff(
        self, captured: Checkout, began: datetime, amount: int
    ) -> None:
        backup = Backup()
        outside.refund_outside(captured.payment, amount)
        backup.restore()
        repaired(began)
        assert anew(captured).status == "captured"
        assert Operation.objects.get(kind="refund").purpose == "outside"
        assert not Discrepancy.objects.filter(kind="restored_refund").exists()
        nothing_moves_later(captured)


@pytest.mark.rule("restore.refund")
class TestARefundWhoseKeyWasReplaced:
    """A refund that got a new key after the backup, because the provider vouched that the first call never arrived."""

    def test_is_matched_to_the_open_operation(
        self, order: Checkout, shares: list[PaymentRequest], began: datetime
    ) -> None:
        mates.pay(shares[0])
        break_down("refund", "error")
        backup = mates_pumped_to_the_refund(order)
        assert mates.settled(shares[0]) == "reimbursed" and borne()["4242"] == 7000
        assert Operation.objects.filter(kind="refund", reason="new_key").exists()
        backup.restore()
        (still_open,) = Operation.objects.filter(kind="refund", ended_at=None)
        repaired(began)
        still_open.refresh_from_db()
        assert (still_open.state, still_open.reason) == ("failed", "new_key")
        assert mates.settled(shares[0]) == "reimbursed"
        nothing_moves_later(order)
        assert borne() == {"4242": 7000, "4444": 2000}

    def test_stays_open_until_the_provider_rules_it_out(self, captured: Checkout, began: datetime) -> None:
        break_down("refund", "error")
        refunds.accept(captured.merchant, captured.pk, ref="r-7", cause=CAUSE)
        mates.pump(captured.pk)
        pass_time(Operation.objects.get(kind="refund"), hours=26)
        backup = Backup()
        mates.pump(captured.pk, rounds=4)
        assert anew(captured).status == "refunded"
        backup.restore()
        break_down("look_up", "not_vouched", times=99)
        repair.repair(began)
        assert borne() == {"4242": 0}
        (still_open,) = Operation.objects.filter(kind="refund", ended_at=None)
        assert (still_open.state, anew(captured).status) == ("unknown", "refunding")


def mates_pumped_to_the_refund(order: Checkout) -> Backup:
    """Run the pump until the lead's reimbursement has an unknown outcome, and let a day pass.

    Return a backup that is made after that day.
    """
    for _ in range(10):
        mates.pump(order.pk)
        if in_doubt := Operation.objects.filter(kind="refund", state="unknown").first():
            pass_time(in_doubt, hours=26)
            return Backup()
    raise AssertionError("nothing went back to the lead")


@pytest.mark.rule("restore.refund")
def test_a_reimbursement_of_a_lost_share_is_reported_as_unknown(
    unpaid: Checkout, pay: Pay, began: datetime
) -> None:
    backup = Backup()
    asked = mates.split(unpaid, 2000)
    paid = pay(unpaid)
    captures.capture(paid.merchant, paid.pk, cause=CAUSE)
    mates.pay(PaymentRequest.objects.get(pk=asked[0].pk))
    assert mates.settled(PaymentRequest.objects.get(pk=asked[0].pk)) == "reimbursed"
    backup.restore()
    done = repaired(began)
    assert (len(done.unknown), anew(unpaid).status) == (1, "captured")
    assert balances(unpaid) == {"provider": 7000, "merchant": -7000}
    found = Discrepancy.objects.get(kind="restored_refund", closed_at=None)
    assert found.facts["checkout"] == str(unpaid.pk)


class TestSharesThatWereLost:
    def paid_and_reimbursed(self, share: PaymentRequest) -> None:
        mates.pay(share)
        assert mates.settled(share) == "reimbursed"

    def test_are_paid_and_reimbursed_once(
        self, order: Checkout, shares: list[PaymentRequest], began: datetime
    ) -> None:
        backup = Backup()
        self.paid_and_reimbursed(shares[0])
        before = borne()
        backup.restore()
        shares[0].refresh_from_db()
        assert shares[0].status == "open"
        repaired(began)
        shares[0].refresh_from_db()
        assert shares[0].status == "reimbursed"
        nothing_moves_later(order)
        assert borne() == before == {"4242": 7000, "4444": 2000}

    def test_that_were_paid_and_not_reimbursed_yet(
        self, order: Checkout, shares: list[PaymentRequest], began: datetime
    ) -> None:
        backup = Backup()
        mates.pay(shares[0])
        mates.pump(order.pk)
        backup.restore()
        repaired(began)
        assert mates.settled(shares[0]) == "reimbursed"
        assert borne() == {"4242": 7000, "4444": 2000}

    @pytest.mark.parametrize("status", ["declined", "cancelled"])
    def test_count_as_paid_even_if_they_were_declined_or_cancelled_in_the_backup(
        self, order: Checkout, shares: list[PaymentRequest], began: datetime, status: str
    ) -> None:
        """After the backup, the mate withdrew the decline, or the lead asked again. Then the mate paid."""
        share = {"declined": mate_shares.decline, "cancelled": mate_shares.cancel}[status](shares[0].pk)
        backup = Backup()
        {"declined": share_changes.reconsider, "cancelled": share_changes.ask_again}[status](share.pk)
        self.paid_and_reimbursed(PaymentRequest.objects.get(pk=share.pk))
        backup.restore()
        share.refresh_from_db()
        assert share.status == status
        repaired(began)
        share.refresh_from_db()
        assert share.status == "reimbursed"
        nothing_moves_later(order)
        assert borne() == {"4242": 7000, "4444": 2000}

    @pytest.mark.rule("restore.refund")
    def test_with_the_refund_of_all(
        self, order: Checkout, shares: list[PaymentRequest], began: datetime
    ) -> None:
        backup = Backup()
        self.paid_and_reimbursed(shares[0])
        mates.give_back(order)
        settle(order)
        assert anew(order).status == "refunded"
        backup.restore()
        repaired(began)
        shares[0].refresh_from_db()
        assert (anew(order).status, shares[0].status) == ("refunded", "refunded")
        accepted = refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
        assert not accepted.is_new
        nothing_moves_later(order)

    @pytest.mark.rule("restore.refund")
    def test_that_were_known_are_rebuilt_with_the_full_refund(
        self, order: Checkout, shares: list[PaymentRequest], began: datetime
    ) -> None:
        self.paid_and_reimbursed(shares[0])
        mates.pay(shares[1], mates.AMYS)
        mates.pump(order.pk)
        backup = Backup()
        mates.give_back(order)
        settle(order)
        backup.restore()
        assert anew(order).status == "captured"
        repaired(began)
        assert anew(order).status == "refunded"
        nothing_moves_later(order)
        assert set(borne().values()) == {0}

    def test_with_the_whole_order(self, unpaid: Checkout, pay: Pay, began: datetime) -> None:
        asked = mates.split(unpaid, 2000, 3000)
        backup = Backup()
        paid = pay(unpaid)
        captures.capture(paid.merchant, paid.pk, cause=CAUSE)
        self.paid_and_reimbursed(PaymentRequest.objects.get(pk=asked[0].pk))
        backup.restore()
        repaired(began)
        statuses = [PaymentRequest.objects.get(pk=share.pk).status for share in asked]
        assert (anew(unpaid).status, statuses) == ("captured", ["reimbursed", "open"])
        nothing_moves_later(unpaid)


@pytest.mark.rule("restore.refund")
@pytest.mark.usefixtures("posted")
def test_a_returned_refund_that_was_sent_again_replaces_the_first_one(
    refunded: Checkout, began: datetime
) -> None:
    come_back()
    backup = Backup()
    sending.send_again(returned(refunded).pk, cause=CAUSE)
    settle(refunded)
    Call.objects.filter(kind="refund").update(returns_at=None)
    backup.restore()
    assert balances(refunded) == {"provider": 9000, "merchant": -9000}
    repaired(began)
    assert balances(refunded) == {} and Refund.objects.get().status == "settled"
    assert not Discrepancy.objects.filter(kind="refund_returned", closed_at=None).exists()
    nothing_moves_later(refunded)


@pytest.mark.rule("restore.refund")
@pytest.mark.usefixtures("posted")
@pytest.mark.parametrize("lost", ["the second sending", "the return too"])
@pytest.mark.parametrize("amount", [3000, 4500], ids=["of a part", "of as much as the lead bears"])
def test_a_reimbursement_that_was_sent_again_begins_no_refund(
    unpaid: Checkout, pay: Pay, began: datetime, amount: int, lost: str
) -> None:
    reimburse(unpaid, pay, amount)
    earlier = Backup() if lost == "the return too" else None
    come_back()
    backup = earlier or Backup()
    sending.send_again(returned(unpaid).pk, cause=CAUSE)
    settle(unpaid)
    Call.objects.filter(returns_at__gt=clock.now()).update(returns_at=None)
    backup.restore()
    repaired(began)
    assert (anew(unpaid).status, balances(unpaid)) == ("captured", {"provider": 9000, "merchant": -9000})
    assert not Discrepancy.objects.filter(kind="refund_returned", closed_at=None).exists()
    nothing_moves_later(unpaid)


@pytest.mark.rule("pledge.ends")
class TestAPledge:
    def test_that_had_ended_stays_ended(self, unpaid: Checkout, began: datetime) -> None:
        pledged = Pledged(unpaid)
        backup = Backup()
        pledging.withdraw(pledged.finn.pk, mate=pledged.mate.pk)
        mates.pump(unpaid.pk, 3)
        backup.restore()
        assert pledged.status(pledged.finn) == "pledged"
        repaired(began)
        assert pledged.status(pledged.finn) == "open"
        pledged.capture()
        assert mates.settled(pledged.finn) == "open"
        mates.give_back(unpaid)
        for _ in range(3):
            mates.pump(unpaid.pk, 3)
        assert pledged.read().status == "refunded"

    def test_for_a_changed_amount_is_charged_once(self, unpaid: Checkout, began: datetime) -> None:
        pledged = Pledged(unpaid)
        backup = Backup()
        pledged.split(Share(3000, "Finn"), Share(2000, "Amy"))
        pledged.pledge(pledged.finn)
        pledged.capture()
        assert mates.settled(pledged.finn) == "reimbursed"
        backup.restore()
        repaired(began)
        mates.pump(unpaid.pk, 5)
        assert pledged.status(pledged.finn) in ("paid", "reimbursed")
        assert mates.borne(unpaid) == {"4242": 6000, "4444": 3000}


@pytest.mark.rule("split.by_item")
def test_a_share_that_was_paid_for_other_units_shows_no_units(
    by_item: Checkout, pay: Pay, began: datetime
) -> None:
    captures.capture(by_item.merchant, pay(by_item).pk, cause=CAUSE)
    backup = Backup()
    unit_claims.take_units(by_item.pk, [1, 1, 0], claim="z" * 64, name="Zoe")
    ades = unit_claims.take_units(by_item.pk, [1, 1, 0], claim="a" * 64, name="Ade")
    mates.pay(ades, claim="a" * 64)
    assert mates.settled(ades) == "reimbursed"
    backup.restore()
    assert PaymentRequest.objects.get(pk=ades.pk).units == [2, 2, 0]
    repaired(began)
    assert mates.settled(ades) == "reimbursed"
    assert (ades.amount, ades.units) == (4275, [])
