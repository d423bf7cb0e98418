"""How a cost is split, in minor units: shares always sum to it (rule split.shares). Pure."""

from collections.abc import Sequence

MAX_PEOPLE = 20


class DoesNotAddUp(ValueError):
    """The mates' shares come to more than the cost; `excess` is by how much, in minor units."""

    def __init__(self, excess: int) -> None:
        super().__init__(f"The shares come to {excess} more than the amount.")
        self.excess = excess


def equally(amount: int, people: int, *, step: int = 1) -> tuple[int, int]:
    """Return (the lead's share, each mate's share) of `amount` minor units between `people`, in multiples of `step`.

    The remainder goes to the lead, so that the shares always sum to the amount. Raises ValueError.
    """
    if not 1 <= people <= MAX_PEOPLE:
        raise ValueError(f"Between 1 and {MAX_PEOPLE} people can share.")
    each = amount // people // step * step
    return amount - each * (people - 1), each


def left_for_lead(amount: int, shares: Sequence[int]) -> int:
    """Return what the mates' own amounts, 1 or more, leave for the lead: 0 or more. Raises DoesNotAddUp, ValueError."""
    if len(shares) >= MAX_PEOPLE or any(share < 1 for share in shares):
        raise ValueError(f"At most {MAX_PEOPLE - 1} mates, each with 1 minor unit or more.")
    if sum(shares) > amount:
        raise DoesNotAddUp(sum(shares) - amount)
    return amount - sum(shares)


def max_people(amount: int, *, minimum: int = 1) -> int:
    """Return how many can share equally so that everybody pays `minimum` or more: a multiple of the step, as well."""
    return min(MAX_PEOPLE, max(1, amount // minimum))
