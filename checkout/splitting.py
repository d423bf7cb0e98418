"""How a cost is shared out. Pure: minor units in, minor units out, nothing lost."""

MOST_PEOPLE = 20


def equally(amount: int, people: int) -> tuple[int, int]:
    """Return (the lead's share, each mate's share) of `amount` minor units between `people`.

    What does not divide goes to the lead, so that the shares always sum to the amount.
    """
    if not 1 <= people <= MOST_PEOPLE:
        raise ValueError(f"Between 1 and {MOST_PEOPLE} people can share.")
    each = amount // people
    return amount - each * (people - 1), each


def most_people(amount: int) -> int:
    """Return how many can share so that everybody pays at least one minor unit."""
    return min(MOST_PEOPLE, amount)
