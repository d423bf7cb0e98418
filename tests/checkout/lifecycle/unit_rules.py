"""Splits orders by item in the random tests: rules for the mates' actions, and a check of units and amounts."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from checkout import mate_shares, states
from checkout.group import share_claims, unit_claims
from checkout.models import Checkout, PaymentRequest
from checkout.split.share_rows import Share
from config.lib import clock
from tests import factories

# An order of £90.00: three tickets, two T-shirts and a fee.
AMOUNT, GOODS = 9000, 8550
QUANTITIES, PRICES = (3, 2, 0), (2250, 900, 0)
ITEMS = [
    factories.item(quantity=3),
    factories.item(item_ref="shirt", name="Tour T-shirt", quantity=2, unit_price=900, category="other"),
    factories.item(item_ref="fee", name="Booking fee", quantity=1, unit_price=450, category="fee"),
]
ZOE, ADE = "z" * 64, "a" * 64  # the digests of two browsers
BROWSERS = st.sampled_from([ZOE, ADE])
TAKEN = st.sampled_from([(1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 2, 0)])
NOT_TAKEN = (
    mate_shares.ShareNotOpen,
    states.OperationInProgress,
    unit_claims.NoPlaceLeft,
    unit_claims.UnitsTaken,
)


class ByItem(NamedTuple):
    """A split by item: the mates' names and units, and the free units."""

    mates: Sequence[tuple[str, Sequence[int]]]
    free: Sequence[int]

    @property
    def units(self) -> list[int]:
        """For each line, the number of units that the lead does not have."""
        return [sum(counts) for counts in zip(self.free, *(units for _, units in self.mates), strict=True)]


ALL_FREE = ByItem([], (3, 2, 0))
SOME_FREE = ByItem([("Finn", (1, 0, 0))], (1, 1, 0))
OTHERS_FREE = ByItem([("Finn", (1, 1, 0))], (2, 1, 0))
NONE_FREE = ByItem([("Finn", (1, 0, 0)), ("Amy", (0, 2, 0))], (0, 0, 0))
BY_ITEM = (ALL_FREE, SOME_FREE, OTHERS_FREE, NONE_FREE)


class UnitRules(RuleBasedStateMachine):
    """Hypothesis rules for a state machine whose orders can be split by item.

    For each split order, `units` has the number of units of each line that the lead does not have. If the order is
    not split by item, this list is empty.
    """

    def __init__(self) -> None:
        super().__init__()
        self.units: dict[UUID, list[int]] = {}

    def split(self, checkout: UUID, parts: ByItem | Sequence[int], *, everyone_first: bool) -> None:
        """Let the lead split the order. Raises the errors of a split."""
        lead = Checkout.objects.values_list("lead", flat=True).get(pk=checkout)
        if isinstance(parts, ByItem):
            mate_shares.split_by_item(checkout, *parts, lead=lead, everyone_first=everyone_first)
        else:
            shares = [Share(amount) for amount in parts]
            mate_shares.split(checkout, shares, lead=lead, everyone_first=everyone_first)
        self.units[checkout] = parts.units if isinstance(parts, ByItem) else []

    @rule(which=st.integers(0, 9), most=TAKEN, browser=BROWSERS)
    def take_units(self, which: int, most: Sequence[int], browser: str) -> None:
        """Let a mate take free units through an order's group link, at most `most` units of each line."""
        orders = [checkout for checkout, given in self.units.items() if given]
        if orders:
            self.take_units_of(orders[which % len(orders)], most, browser)

    def take_units_of(self, order: UUID, most: Sequence[int], browser: str) -> None:
        """Let a mate take free units of this order. If it has no free units, there is no effect."""
        shares = list(PaymentRequest.objects.filter(checkout=order))
        free = unit_claims.free_units(shares, clock.now())
        units = [min(counts) for counts in zip(most, free, strict=False)]
        with suppress(*NOT_TAKEN):
            share = unit_claims.take_units(order, units, claim=browser, name=f"Mate {browser[0]}")
            share.refresh_from_db()
            assert (share.status, share.units, share.claim_digest) == ("open", units, browser)

    @rule(which=st.integers(0, 9), stays=st.booleans())
    def keep_or_leave_units(self, which: int, stays: bool) -> None:
        """Let a mate who has taken a share either sign in to it or leave it."""
        rows = PaymentRequest.objects.filter(checkout__in=self.units).exclude(claim_digest="")
        claimed = list(rows.order_by("pk"))
        if not claimed:
            return
        share = claimed[which % len(claimed)]
        act = share_claims.extend_claim if stays else share_claims.release_claim
        with suppress(mate_shares.ShareNotOpen):
            act(share.pk, claim=share.claim_digest)

    @invariant()
    def each_unit_is_paid_for_once(self) -> None:
        for checkout, units in self.units.items():
            check_units(list(PaymentRequest.objects.filter(checkout=checkout)), units)


def check_units(shares: Sequence[PaymentRequest], units: Sequence[int]) -> None:
    """Assert that the shares together have these units of each line, and that each amount is correct.

    The lead has the other units. Because the amounts of shares are rounded down, the lead can pay up to one minor
    unit more for each share.
    """
    if not units:
        assert [share.units for share in shares if share.units] == []
        return
    assert [sum(counts) for counts in zip(*(share.units for share in shares), strict=True)] == list(units)
    assert [share.amount for share in shares] == [_cost(share.units) for share in shares]
    own = _cost([most - taken for most, taken in zip(QUANTITIES, units, strict=True)])
    assert 0 <= AMOUNT - sum(share.amount for share in shares) - own <= len(shares)


def _cost(units: Sequence[int]) -> int:
    assert min(units) >= 0
    return sum(count * price for count, price in zip(units, PRICES, strict=True)) * AMOUNT // GOODS
