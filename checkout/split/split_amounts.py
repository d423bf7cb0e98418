"""Calculations that split a cost into shares, in minor units. The sum of the shares is always the cost.

No function has side effects. Rule split.shares.
"""

from collections.abc import Sequence

MAX_PEOPLE = 20


class SharesExceedAmount(ValueError):
    """The sum of the mates' shares exceeds the cost. `excess` is the difference in minor units."""

    def __init__(self, excess: int) -> None:
        super().__init__(f"The shares come to {excess} more than the amount.")
        self.excess = excess


def equal_shares(amount: int, people: int, *, step: int) -> tuple[int, int]:
    """Return the lead's share and each mate's share of `amount` minor units.

    `people` includes the lead. Each mate's share is a multiple of `step`. The lead's share includes the remainder, so
    that all shares add up to the amount. Raises ValueError.
    """
    if not 1 <= people <= MAX_PEOPLE:
        raise ValueError(f"Between 1 and {MAX_PEOPLE} people can share.")
    each = amount // people // step * step
    return amount - each * (people - 1), each


def leads_part(amount: int, shares: Sequence[int]) -> int:
    """Return the part of `amount` that the lead pays, which is 0 or more.

    `shares` are the amounts that the mates pay. Each is 1 or more. Raises SharesExceedAmount, ValueError.
    """
    if len(shares) >= MAX_PEOPLE or any(share < 1 for share in shares):
        raise ValueError(f"At most {MAX_PEOPLE - 1} mates, each with 1 minor unit or more.")
    if sum(shares) > amount:
        raise SharesExceedAmount(sum(shares) - amount)
    return amount - sum(shares)


def max_people(amount: int, *, minimum: int) -> int:
    """Return the largest number of people who can share `amount` equally if each pays at least `minimum`.

    `minimum` must be a multiple of the step.
    """
    return min(MAX_PEOPLE, max(1, amount // minimum))
