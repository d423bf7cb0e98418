"""Named steps of a protocol's model. With the names, a test can take the same steps with the real code."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Move(NamedTuple, Generic[S]):
    """A step: its name with arguments, a sentence that describes it, and the state after it."""

    act: tuple[str, ...]
    said: str
    after: S


class Moving(Protocol[S]):
    """A model whose steps have names."""

    def start(self) -> S: ...

    def moves(self, state: S, /) -> Iterable[Move[S]]:
        """Yield each step that is possible now."""


def steps_of(moves: Iterable[Move[S]]) -> Iterator[tuple[str, S]]:
    """Yield each step in the form that the search needs: a sentence, and the state after the step."""
    for move in moves:
        yield move.said, move.after
