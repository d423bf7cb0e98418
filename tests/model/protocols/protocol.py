"""The description of a protocol: how it works, what it promises, and how it fails if a rule is left out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from checkout.states import MoveRefused
from tests.model.search import Model
from tests.model.variants import Variant


@dataclass(frozen=True)
class Protocol:
    """A protocol between processes, or between the service and other parties, with its model.

    `code` lists the modules that implement the protocol. `drawing` is a picture in plain text, at most 100
    columns wide. Each variant leaves out one rule of the design, and the search finds an invariant that the
    variant breaks.
    """

    title: str
    summary: str  # one or two sentences of Markdown
    code: tuple[str, ...]
    drawing: str
    invariants: tuple[str, ...]
    design: Model[Any]
    variants: tuple[Variant, ...]


def follow_table(state: Any, name: str, to: str, check: Callable[[str, str], None]) -> Any:
    """Change the status `name` of a model's state if the code's table of states allows it.

    Otherwise, store the refusal as the state's `fault`. `check` is the function that checks the table.
    """
    try:
        check(getattr(state, name), to)
    except MoveRefused as refused:
        return state._replace(fault=str(refused).rstrip("."))
    return state._replace(**{name: to})
