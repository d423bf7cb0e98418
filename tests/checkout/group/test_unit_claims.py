"""If an order is split by item, mates take units of its lines."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection

from checkout import captures, mate_shares, pledges
from checkout.group import pledging, share_changes, share_claims, unit_claims
from checkout.mate_shares import ShareNotOpen
from checkout.models import Checkout, LeadNotification, PaymentRequest
from checkout.proof import ledger_proof
from config.lib import clock
from payments.models import Merchant
from payments.provider import AmountRule, CardUse
from payments.providers.sandbox import bank
from payments.providers.sandbox.adapter import SandboxProvider
from tests import factories, mates
from tests.factories import CAUSE, CustomerFactory

pytestmark = pytest.mark.django_db
ZOE, ADE = "z" * 64, "a" * 64


@pytest.fixture
def at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the smallest amount that a card can be charged to £0.30."""
    monkeypatch.setattr(SandboxProvider, "amount_rule", lambda _, currency: AmountRule(minimum=30))


@pytest.fixture(autouse=True)
def _proven(db: None) -> Iterator[None]:
    yield
    assert ledger_proof.find_breaches() == []


def take(order: Checkout, *units: int, claim: str = ZOE, name: str = "Zoe") -> PaymentRequest:
    return unit_claims.take_units(order.pk, units, claim=claim, name=name)


def bill(order: Checkout) -> list[tuple[str, int, list[int]]]:
    """Return the name, amount and units of each share."""
    return [
        (share.shown_name, share.amount, share.units) for share in order.payment_requests.order_by("position")
    ]


def free(order: Checkout) -> list[int]:
    return unit_claims.free_units(list(order.payment_requests.all()), clock.now())


@pytest.mark.rule("split.by_item")
class TestSplit:
    def test_leaves_the_other_units_and_the_rest_to_the_lead(self, by_item: Checkout) -> None:
        assert bill(by_item) == [("Finn", 2375, [1, 0, 0]), ("", 8550, [2, 2, 0])]
        by_item.refresh_from_db()
        assert by_item.people == 3

    def test_keeps_the_pledge_of_a_mate_whose_units_stay(self, by_item: Checkout) -> None:
        finn = by_item.payment_requests.get(name="Finn")
        mates.pay(finn)
        split = [("Finn", [1, 0, 0]), ("Priya", [0, 1, 0])]
        mate_shares.split_by_item(by_item.pk, split, [1, 1, 0], lead=Checkout.objects.get().lead_id)
        finn.refresh_from_db()
        assert finn.status == "pledged"
        assert [row[0] for row in bill(by_item)] == ["Finn", "Priya", ""]

    @pytest.mark.rule("pledge.split_changes")
    def test_ends_the_pledge_of_a_mate_whose_units_change(self, by_item: Checkout) -> None:
        finn = by_item.payment_requests.get(name="Finn")
        mates.pay(finn)
        mate_shares.split_by_item(
            by_item.pk, [("Finn", [1, 1, 0])], [2, 1, 0], lead=Checkout.objects.get().lead_id
        )
        finn.refresh_from_db()
        assert (finn.status, finn.units) == ("open", [1, 1, 0])

    def test_gives_a_mate_with_a_claim_no_other_units(self, by_item: Checkout) -> None:
        take(by_item, 1, 0, 0)
        lead = Checkout.objects.get().lead_id
        mate_shares.split_by_item(by_item.pk, [("Finn", [1, 0, 0])], [2, 2, 0], lead=lead)
        assert bill(by_item) == [("Finn", 2375, [1, 0, 0]), ("", 8550, [2, 2, 0])]

    def test_keeps_the_second_of_two_mates_of_one_name(self, by_item: Checkout) -> None:
        lead = Checkout.objects.get().lead_id
        split = [("Zoe", [1, 0, 0]), ("Zoe", [0, 1, 0])]
        mate_shares.split_by_item(by_item.pk, split, [1, 1, 0], lead=lead, everyone_first=True)
        second = by_item.payment_requests.get(units=[0, 1, 0])
        mates.pay(second)
        mate_shares.split_by_item(by_item.pk, split[1:], [2, 1, 0], lead=lead)
        second.refresh_from_db()
        assert second.status == "pledged"

    @pytest.mark.rule("pledge.split_changes")
    def test_never_holds_a_card_for_other_units_than_the_mate_agreed_to(self, by_item: Checkout) -> None:
        share = take(by_item, 1, 0, 0)
        with pytest.raises(ShareNotOpen, match="changed"):
            mate_shares.pay(
                share.pk,
                agreed=(share.amount, [0, 1, 0]),
                card=CardUse(bank.tokenise(subject=share.pk, number=mates.FINNS)),
                mate=CustomerFactory.create(),
                cause=CAUSE,
                claim=ZOE,
            )

    def test_of_more_units_than_the_order_has_writes_nothing(self, by_item: Checkout) -> None:
        before = bill(by_item)
        with pytest.raises(ValueError, match="More units"):
            mate_shares.split_by_item(
                by_item.pk, [("Finn", [4, 0, 0])], [1, 0, 0], lead=Checkout.objects.get().lead_id
            )
        assert bill(by_item) == before

    @pytest.mark.rule("split.minimum")
    def test_asks_no_mate_for_less_than_a_card_can_be_charged(self, acme: Merchant, at_least: None) -> None:
        cheap = factories.checkout(
            acme, items=[factories.item(quantity=100, unit_price=10)], total_amount=1000
        )
        with pytest.raises(ValueError, match="Each share"):
            mate_shares.split_by_item(cheap.pk, [("Finn", [2])], [0])


@pytest.mark.rule("split.free_units")
class TestTake:
    def test_divides_the_free_units(self, by_item: Checkout) -> None:
        share = take(by_item, 1, 1, 0)
        assert (share.shown_name, share.amount, share.claim_digest) == ("Zoe", 4275, ZOE)
        assert bill(by_item) == [
            ("Finn", 2375, [1, 0, 0]),
            ("", 4275, [1, 1, 0]),
            ("Zoe", 4275, [1, 1, 0]),
        ]
        assert free(by_item) == [1, 1, 0]

    def test_of_all_units_leaves_none(self, by_item: Checkout) -> None:
        take(by_item, 2, 2, 0)
        assert free(by_item) == [0, 0, 0]
        assert Checkout.objects.get().people == 3

    @pytest.mark.parametrize("units", [(3, 0, 0), (0, 0, 1), (0, 0, 0), (-1, 2, 0), (1, 0), ()])
    def test_of_units_that_are_not_free_changes_nothing(
        self, by_item: Checkout, units: Sequence[int]
    ) -> None:
        before = bill(by_item)
        with pytest.raises(unit_claims.UnitsTaken):
            take(by_item, *units)
        assert bill(by_item) == before

    def test_needs_a_name(self, by_item: Checkout) -> None:
        with pytest.raises(share_claims.NameMissing):
            take(by_item, 1, 0, 0, name="")

    @pytest.mark.rule("group.one_share")
    def test_releases_what_the_same_browser_had_taken(self, by_item: Checkout) -> None:
        take(by_item, 2, 0, 0)
        take(by_item, 0, 1, 0)
        assert free(by_item) == [2, 1, 0]
        assert len(bill(by_item)) == 3

    @pytest.mark.rule("group.kept")
    def test_takes_units_that_another_mate_released(self, by_item: Checkout) -> None:
        left = take(by_item, 2, 1, 0)
        share_claims.release_claim(left.pk, claim=ZOE)
        assert free(by_item) == [2, 2, 0]
        take(by_item, 2, 2, 0, claim=ADE, name="Ade")
        assert bill(by_item) == [("Finn", 2375, [1, 0, 0]), ("Ade", 8550, [2, 2, 0])]

    def test_again_and_again_creates_no_further_shares(self, by_item: Checkout) -> None:
        for units in ((1, 0, 0), (2, 2, 0), (0, 1, 0), (2, 1, 0)) * 3:
            share = take(by_item, *units)
            share_claims.release_claim(share.pk, claim=ZOE)
        assert PaymentRequest.every.count() <= 3

    def test_leaves_the_free_share_with_its_link_to_the_lead(self, by_item: Checkout) -> None:
        before = by_item.payment_requests.get(name="")
        share = take(by_item, 1, 0, 0)
        before.refresh_from_db()
        assert share.pk != before.pk and (before.units, before.claim_digest) == ([1, 2, 0], "")

    def test_gives_no_units_to_a_mate_whose_claim_has_ended(self, by_item: Checkout) -> None:
        zoes = take(by_item, 1, 0, 0)
        PaymentRequest.objects.filter(pk=zoes.pk).update(claimed_until=clock.now())
        take(by_item, 0, 1, 0, claim=ADE, name="Ade")
        assert [row for row in bill(by_item) if row[0] == "Zoe"] == []
        with pytest.raises((ShareNotOpen, PaymentRequest.DoesNotExist)):
            share_claims.extend_claim(zoes.pk, claim=ZOE)

    def test_are_not_taken_as_a_whole_share(self, by_item: Checkout) -> None:
        with pytest.raises(ShareNotOpen):
            share_claims.claim_share(by_item.payment_requests.get(name="").pk, claim=ADE, name="Ade")

    @pytest.mark.rule("split.minimum")
    def test_leaves_to_the_lead_what_is_too_little_for_a_card(self, acme: Merchant, at_least: None) -> None:
        line = factories.item(quantity=100, unit_price=10)
        cheap = factories.checkout(acme, items=[line], total_amount=1000)
        mate_shares.split_by_item(cheap.pk, [], [5], everyone_first=True)
        assert take(cheap, 3).amount == 30
        assert free(cheap) == [0]

    @pytest.mark.rule("pledge.withdraw")
    def test_a_mate_who_withdrew_and_pays_again_keeps_their_name(self, by_item: Checkout) -> None:
        zoe, share = CustomerFactory.create(), take(by_item, 1, 0, 0)
        mates.pay(share, mate=zoe, claim=ZOE)
        pledging.withdraw(share.pk, mate=zoe.pk)
        assert free(by_item) == [2, 2, 0]
        mates.pay(PaymentRequest.objects.get(pk=share.pk), mates.AMYS, zoe)
        assert ("Zoe", 2375, [1, 0, 0]) in bill(by_item)
        assert free(by_item) == [1, 2, 0]

    @pytest.mark.rule("split.minimum")
    def test_below_the_minimum_says_what_is_missing(self, acme: Merchant, at_least: None) -> None:
        cheap = factories.checkout(
            acme, items=[factories.item(quantity=100, unit_price=10)], total_amount=1000
        )
        mate_shares.split_by_item(cheap.pk, [], [100], everyone_first=True)
        with pytest.raises(unit_claims.TooSmall) as refused:
            take(cheap, 2)
        assert refused.value.missing == 10

    def test_by_the_last_of_twenty_people_must_be_of_all_remaining_units(self, acme: Merchant) -> None:
        order = factories.checkout(acme, items=[factories.item(quantity=30, unit_price=300)])
        mate_shares.split_by_item(
            order.pk, [(f"Mate {number}", [1]) for number in range(18)], [10], everyone_first=True
        )
        with pytest.raises(unit_claims.NoPlaceLeft):
            take(order, 9)
        assert take(order, 10).amount == 3000

    def test_of_a_captured_order(self, by_item: Checkout, pay: Callable[..., Checkout]) -> None:
        captures.capture(by_item.merchant, pay(by_item).pk, cause=CAUSE)
        share = take(by_item, 1, 1, 0)
        mates.pay(share, claim=ZOE)
        assert mates.settled(share) == "reimbursed"
        rest = by_item.payment_requests.get(status="open", name="")
        assert (rest.units, rest.expires_at) == ([1, 1, 0], share.expires_at)

    @pytest.mark.parametrize("units", [(2, 2, 0), (0, 1, 0)])
    def test_of_joined_shares_keeps_the_later_deadline(
        self, by_item: Checkout, pay: Callable[..., Checkout], units: Sequence[int]
    ) -> None:
        captures.capture(by_item.merchant, pay(by_item).pk, cause=CAUSE)
        zoes = take(by_item, 1, 0, 0)
        by_item.payment_requests.update(expires_at=clock.now() + timedelta(hours=1))
        mate_shares.decline(zoes.pk, ZOE)
        until = share_changes.ask_again(zoes.pk).expires_at
        take(by_item, *units, claim=ADE, name="Ade")
        ends = {share.expires_at for share in by_item.payment_requests.exclude(name="Finn")}
        assert ends == {until}

    def test_of_an_order_whose_shop_is_stopped_is_refused(self, by_item: Checkout) -> None:
        factories.stop(by_item.merchant)
        with pytest.raises(ShareNotOpen):
            take(by_item, 1, 0, 0)


@pytest.mark.rule("pledge.lead_told")
def test_everyone_is_in_only_once_the_free_units_are_taken(by_item: Checkout) -> None:
    mates.pay(by_item.payment_requests.get(name="Finn"))
    assert not LeadNotification.objects.exists()
    share = take(by_item, 2, 2, 0)
    mates.pay(share, mates.AMYS, claim=ZOE)
    assert LeadNotification.objects.get().kind == LeadNotification.Kind.ALL_IN
    assert pledges.is_waiting(Checkout.objects.get())


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("split.free_units")
def test_of_a_hundred_people_two_get_the_two_units(acme: Merchant) -> None:
    order = factories.checkout(acme, items=[factories.item(quantity=3, unit_price=3000)])
    mate_shares.split_by_item(order.pk, [], [2], everyone_first=True)

    def race(number: int) -> bool:
        try:
            take(order, 1, claim=f"{number:064}", name=f"Mate {number}")
        except (unit_claims.UnitsTaken, ShareNotOpen):
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(race, range(100))) == 2
    assert [(amount, units) for _name, amount, units in bill(order)] == [(3000, [1]), (3000, [1])]
