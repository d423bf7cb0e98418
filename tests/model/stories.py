"""Describes counterexamples in plain English."""

from typing import Any

from tests.model.books import REAL, State, sum_cards
from tests.model.checks import Money
from tests.model.provider import name
from tests.model.search import Result
from tests.model.variants import Variant


def tell(variant: Variant, found: Result[Any]) -> str:
    """Return the counterexample of a variant as text: the rule that is left out, the steps, and the problem."""
    lines = [f"If {variant.without}:", ""]
    lines += [f"{number}. {said}" for number, (said, _) in enumerate(found.story, start=1)]
    end = found.story[-1][1]
    sums = f" {describe_cards(variant.model, end)}" if isinstance(variant.model, Money) else ""
    lines += ["", f"{found.problem}.{sums}", f"The rule: {variant.rule}"]
    return "\n".join(lines)


def describe_cards(model: Money, state: State) -> str:
    """Return sentences with the amounts that were charged to each card and refunded to it."""
    sentences = []
    for index, card in enumerate(sum_cards(model.scope, state, REAL)):
        got = {"by refunds": card.refunded, "from its bank": card.withdrawn, "outside": card.outside}
        parts = [f"£{amount} {way}" for way, amount in got.items() if amount]
        whose = name(index)
        sentences.append(
            f"{whose[0].upper()}{whose[1:]} paid £{card.captured} and got {' and '.join(parts) or 'no money back'}."
        )
    return " ".join(sentences)
