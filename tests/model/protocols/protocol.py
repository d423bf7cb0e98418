"""What a protocol's module describes: how it works, what it promises, and how each broken variant fails."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from checkout.states import MoveRefused
from tests.model.search import Model
from tests.model.variants import Variant


@dataclass(frozen=True)
class Protocol:
    """A protocol between processes, or between the service and others, with its model.

    `code` lists the modules that carry the protocol out. `drawing` is a picture in plain text, at most 100 columns
    wide. Each variant leaves out one rule of the design, and the search finds an invariant that the variant breaks.
    """

    title: str
    summary: str  # one or two sentences of Markdown
    code: tuple[str, ...]
    drawing: str
    invariants: tuple[str, ...]
    design: Model[Any]
    variants: tuple[Variant, ...]


def follow_table(state: Any, name: str, to: str, check: Callable[[str, str], None]) -> Any:
    """Move the status `name` of a model's state, if the code's table of states allows it.

    Otherwise, the state gets the refusal as its `fault`. `check` is the function of the table.
    """
    try:
        check(getattr(state, name), to)
    except MoveRefused as refused:
        return state._replace(fault=str(refused).rstrip("."))
    return state._replace(**{name: to})
