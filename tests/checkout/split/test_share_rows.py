"""If the lead splits an order again, some shares and their links stay, and the others are replaced."""

import base64

import pytest

from checkout import mate_shares
from checkout.models import Checkout, GroupLink, PaymentRequest
from checkout.split import share_rows
from checkout.split.share_rows import Share
from payments import open_operations
from tests import mates
from tests.factories import CustomerFactory

pytestmark = pytest.mark.django_db


class Split:
    """An unpaid order whose pay links are open."""

    def __init__(self, order: Checkout) -> None:
        self.order, self.lead = order, CustomerFactory.create()
        mate_shares.make_lead(order.pk, self.lead)

    def write(self, *shares: Share) -> dict[str, PaymentRequest]:
        """Split the order, and return the shares by name. The key "" has the last share without a name."""
        mate_shares.split(self.order.pk, shares, lead=self.lead.pk, everyone_first=True)
        return {share.shown_name: share for share in self.order.payment_requests.order_by("position")}


@pytest.fixture
def split(unpaid: Checkout) -> Split:
    return Split(unpaid)


@pytest.mark.rule("pledge.split_changes")
class TestAnotherSplit:
    def test_keeps_the_link_of_a_mate_who_is_asked_again_at_another_place(self, split: Split) -> None:
        before = split.write(Share(1000, "Finn"), Share(2000, "Amy"))
        after = split.write(Share(2000, "Amy"), Share(1000, "Finn"))
        assert {name: share.pk for name, share in after.items()} == {
            name: share.pk for name, share in before.items()
        }
        assert (after["Amy"].position, after["Finn"].position) == (2, 3)

    def test_recognises_a_mate_by_the_name_entered_at_the_link(self, split: Split) -> None:
        (share,) = split.write(Share(1000)).values()
        share.claim("z" * 64, split.order.created_at, split.order.payable_until, name="Zoe")
        after = split.write(Share(2000, "Amy"), Share(1000, "Zoe"))
        assert after["Zoe"].pk == share.pk and after["Zoe"].claim_digest == "z" * 64

    def test_asks_for_another_amount_at_the_same_link(self, split: Split) -> None:
        before = split.write(Share(1000, "Finn"))
        after = split.write(Share(1500, "Finn"))
        assert (after["Finn"].pk, after["Finn"].amount) == (before["Finn"].pk, 1500)

    @pytest.mark.parametrize("status", ["paying", "pledged"])
    def test_keeps_the_hold_of_a_mate_whose_name_is_corrected(self, split: Split, status: str) -> None:
        before = split.write(Share(1000, "Fin"), Share(1000, "Amy"))["Fin"]
        mates.pay(before)
        if status == "pledged":
            mates.pump(split.order.pk)
        PaymentRequest.objects.filter(pk=before.pk).update(status=status)
        after = split.write(Share(1000, "Finn"), Share(1000, "Amy"))["Finn"]
        assert (after.pk, after.status, after.token) == (before.pk, status, before.token)
        assert open_operations.live_payment(after.pk) is not None

    @pytest.mark.parametrize(
        "other", [Share(1500, "Finn"), Share(1000, "Finn", phone="+447700900123"), Share(1000)]
    )
    def test_ends_the_pledge_if_more_than_the_name_changes(self, split: Split, other: Share) -> None:
        before = split.write(Share(1000, "Fin"))["Fin"]
        mates.pay(before)
        assert mates.settled(before) == "pledged"
        split.write(other)
        gone = PaymentRequest.every.get(pk=before.pk)
        assert gone.status == "cancelled" and gone.replaced_at is not None
        assert open_operations.live_payment(gone.pk) is None

    def test_replaces_a_share_of_a_mate_who_is_no_longer_asked(self, split: Split) -> None:
        before = split.write(Share(1000, "Finn"))
        split.write(Share(1000, "Amy"))
        gone = PaymentRequest.every.get(pk=before["Finn"].pk)
        assert gone.status == "cancelled" and gone.replaced_at is not None

    def test_keeps_a_limited_number_of_replaced_shares_and_those_with_a_payment(
        self, split: Split, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(share_rows, "MAX_REPLACED", 3)
        before = split.write(Share(1000, "Finn"))["Finn"]
        mates.pay(before)
        assert mates.settled(before) == "pledged"
        for number in range(6):
            split.write(Share(1000, f"Amy {number}", phone="+447700900123"))
        rows = PaymentRequest.every.order_by("pk").values_list("name", flat=True)
        assert list(rows) == ["Finn", "Amy 2", "Amy 3", "Amy 4", "Amy 5"]

    def test_deletes_shares_whose_links_were_never_open(self, split: Split) -> None:
        mate_shares.split(split.order.pk, [Share(1000, "Finn")], lead=split.lead.pk)
        mate_shares.split(split.order.pk, [Share(1000, "Amy")], lead=split.lead.pk)
        assert [share.name for share in PaymentRequest.every.all()] == ["Amy"]


@pytest.mark.rule("pledge.split_changes")
class TestMatching:
    """Which share stays for a mate if several shares could."""

    def rewrite(self, split: Split, before: list[Share], after: list[Share]) -> list[tuple[int, int]]:
        """Split twice. Return the new position and amount of each share of the first split, 0 if it ended."""
        split.write(*before)
        rows = list(split.order.payment_requests.order_by("position"))
        split.write(*after)
        kept = {row.pk: (row.position, row.amount) for row in split.order.payment_requests.all()}
        return [kept.get(row.pk, (0, 0)) for row in rows]

    def test_of_two_mates_with_one_name_prefers_the_same_amount(self, split: Split) -> None:
        before = [Share(1000, "Finn"), Share(2000, "Finn")]
        assert self.rewrite(split, before, before[::-1]) == [(3, 1000), (2, 2000)]

    def test_of_two_mates_with_one_name_prefers_the_same_place(self, split: Split) -> None:
        before, after = [Share(1000, "Finn"), Share(2000, "Finn")], [Share(500, "Amy"), Share(2500, "Finn")]
        assert self.rewrite(split, before, after) == [(0, 0), (3, 2500)]

    def test_finds_each_of_two_mates_with_one_name_and_one_amount(self, split: Split) -> None:
        finn = Share(1000, "Finn")
        after = [Share(500, "Amy"), Share(500, "Bob"), finn, finn]
        assert self.rewrite(split, [finn, finn], after) == [(4, 1000), (5, 1000)]

    def test_finds_a_mate_at_another_place_with_another_amount(self, split: Split) -> None:
        before, after = [Share(1000, "Finn"), Share(2000, "Amy")], [Share(2500, "Amy"), Share(1500, "Finn")]
        assert self.rewrite(split, before, after) == [(3, 1500), (2, 2500)]

    def test_finds_the_mate_who_took_a_share_before_it_asks_no_one(self, split: Split) -> None:
        (share,) = split.write(Share(1000)).values()
        share.claim("z" * 64, split.order.created_at, split.order.payable_until, name="Zoe")
        assert split.write(Share(1000), Share(1000, "Zoe"))["Zoe"].pk == share.pk

    def test_keeps_the_link_of_free_units_and_of_a_mates_units(self, split: Split) -> None:
        before = [Share(1000, "Finn", units=(1, 0)), Share(2000, units=(0, 1))]
        after = [Share(2000, "Finn", units=(2, 0)), Share(4000, units=(0, 2))]
        assert self.rewrite(split, before, after) == [(2, 2000), (3, 4000)]

    def test_does_not_make_units_free_that_a_person_has_taken(self, split: Split) -> None:
        (share,) = split.write(Share(1000, units=(1, 0))).values()
        share.claim("z" * 64, split.order.created_at, split.order.payable_until)
        (free,) = split.write(Share(1000, units=(1, 0))).values()
        assert free.pk != share.pk
        assert PaymentRequest.every.get(pk=share.pk).replaced_at is not None


@pytest.mark.rule("split.shares")
def test_each_link_has_a_token_of_128_random_bits(split: Split) -> None:
    shares = split.write(Share(1000, "Finn"), Share(1000, "Amy")).values()
    tokens = {GroupLink.objects.get().token, *(share.token for share in shares)}
    assert len(tokens) == 3
    assert {len(base64.urlsafe_b64decode(f"{token}==")) * 8 for token in tokens} == {128}
