"""A cost is split by amount: the shares of the mates, and the rest that the lead pays."""

import pytest

from checkout.split import split_amounts


@pytest.mark.rule("split.shares")
class TestEqualShares:
    @pytest.mark.parametrize(
        ("amount", "people", "step", "shares"),
        [
            *((9000, 1, 1, (9000, 9000)), (9000, 2, 1, (4500, 4500)), (9000, 20, 1, (450, 450))),
            *((1000, 3, 1, (334, 333)), (1000, 3, 100, (400, 300)), (5, 20, 1, (5, 0))),
        ],
    )
    def test_leave_the_remainder_to_the_lead(
        self, amount: int, people: int, step: int, shares: tuple[int, int]
    ) -> None:
        lead, mate = split_amounts.equal_shares(amount, people, step=step)
        assert (lead, mate) == shares
        assert lead + mate * (people - 1) == amount

    @pytest.mark.parametrize("people", [-1, 0, 21])
    def test_are_for_one_to_twenty_people(self, people: int) -> None:
        with pytest.raises(ValueError, match="Between 1 and 20 people"):
            split_amounts.equal_shares(9000, people, step=1)


@pytest.mark.rule("split.shares")
class TestTheLeadsPart:
    @pytest.mark.parametrize(
        ("shares", "part"), [([], 100), ([1], 99), ([60, 40], 0), ([60, 39], 1), ([1] * 19, 81)]
    )
    def test_is_the_rest(self, shares: list[int], part: int) -> None:
        assert split_amounts.leads_part(100, shares) == part

    @pytest.mark.parametrize("shares", [[0], [5, -1], [1] * 20])
    def test_needs_at_most_nineteen_shares_of_one_or_more(self, shares: list[int]) -> None:
        with pytest.raises(ValueError, match="At most 19 mates"):
            split_amounts.leads_part(100, shares)

    def test_is_refused_if_the_shares_exceed_the_amount(self) -> None:
        with pytest.raises(split_amounts.SharesExceedAmount, match="3 more") as refused:
            split_amounts.leads_part(100, [60, 43])
        assert refused.value.excess == 3


@pytest.mark.parametrize(
    ("amount", "minimum", "people"), [(29, 30, 1), (30, 30, 1), (59, 30, 1), (60, 30, 2), (9000, 30, 20)]
)
def test_the_most_people_are_as_many_as_can_pay_the_minimum(amount: int, minimum: int, people: int) -> None:
    assert split_amounts.max_people(amount, minimum=minimum) == people
