"""Checks the models of the protocols and of money after the capture, and prints their counterexamples.

Usage: `python -m tests.model [large]`. For the protocols, docs/protocols.md shows the same counterexamples.
"""

import sys
from time import process_time
from typing import Any

from tests.model.checks import LARGE, SMALL, VARIANTS, Money
from tests.model.keys import Keys
from tests.model.protocols import PROTOCOLS
from tests.model.search import Model, explore
from tests.model.stories import tell

INVARIANTS = """\
The design keeps these invariants in every state:
- No refund is carried out twice, and no card reads voided after it was charged.
- The merchant loses at most what others refunded and what banks took.
- A planned refund is one that its card can take. While a dispute is open, the service plans and sends no refund.
- The account of what we owe the lead is never negative, and it is zero once the order is terminal.
- At rest, every card bears its target, or has less by a dispute, or waits for an operator.
- At rest and not terminal, the merchant or an operator can act.
- The state refunding always ends.
"""


def main(is_large: bool) -> int:
    """Check the model in each scope. Print the number of states, and a counterexample for each variant.

    Return 1 if the design breaks an invariant, else 0.
    """
    print(INVARIANTS)
    scopes = {**SMALL, **LARGE} if is_large else SMALL
    models: dict[str, Model[Any]] = {protocol.title: protocol.design for protocol in PROTOCOLS}
    models["the keys of one refund"] = Keys()
    models |= {title: Money(scope) for title, scope in scopes.items()}
    broken = [title for title, model in models.items() if not _check(title, model)]
    print("\nEach variant leaves out one rule.")
    for protocol in PROTOCOLS:
        for variant in protocol.variants:
            print(f"\n{protocol.title}. {tell(variant, explore(variant.model))}")
    print("\nIn the next stories, the lead has paid £3; the mate's share is £1.")
    for variant in VARIANTS:
        print(f"\n{tell(variant, explore(variant.model))}")
    return 1 if broken else 0


def _check(title: str, model: Model[Any]) -> bool:
    started = process_time()
    found = explore(model)
    print(f"{found.states:>9,} states in {process_time() - started:4.1f} s of CPU: {title}")
    for said, _ in found.story:
        print(f"    {said}")
    if found.problem:
        print(f"    {found.problem}.")
    return not found.problem


if __name__ == "__main__":
    sys.exit(main("large" in sys.argv[1:]))
