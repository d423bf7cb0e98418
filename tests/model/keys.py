"""A model of one refund and its idempotency keys.

A call can be lost, arrive late, arrive twice, or get an error. Time passes in ticks. The provider remembers a
key for LIFE ticks after the key's first call has arrived. It can carry out an accepted call at any time in this
period. A call takes at most MARGIN ticks to arrive. In the service, LIFE is usually a day and MARGIN is an hour
(docs/money.md, "Keys").
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

LIFE, MARGIN = 3, 1
OLD = LIFE + MARGIN + 1  # all greater ages have the same effect


class KeyRule(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    SILENCE = "a 5xx answer is taken as proof that the call was not carried out"
    WAIT = "a new key is used as soon as the provider does not find the call"
    LAST_AGE = "the age of the first sending decides when a new key is used"
    FIRST_AGE = "the age of the last sending decides how long a key is sent again"
    OTHER_SENDINGS = "a refusal of one sending is taken as a refusal of all"


class Call(NamedTuple):
    """A call that was sent to the provider and has not arrived yet."""

    key: int
    age: int


class Memory(NamedTuple):
    """A key that the provider remembers.

    The values of `result` are busy (the call can still be carried out), done and refused.
    """

    key: int
    result: str
    age: int


class State(NamedTuple):
    """The refund: our row (planned, unknown or succeeded), the calls, and the state at the provider."""

    row: str = "planned"
    key: int = 1
    first: int = 0  # ticks since the first call with the key
    last: int = 0  # ticks since the last call with the key
    sendings: int = 0  # number of calls that were sent with the key
    refusals: int = 0  # number of these calls that were refused
    calls: tuple[Call, ...] = ()
    memories: tuple[Memory, ...] = ()
    done: int = 0  # number of times that the money was refunded
    can_refuse: bool = True
    left: int = 3  # number of calls that can still be sent


Steps = Iterator[tuple[str, State]]


@dataclass(frozen=True)
class Keys:
    """The model, with at most one rule left out."""

    without: KeyRule | None = None

    def start(self) -> State:
        """Return the first state: a planned refund that was never sent."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return a sentence if the refund was carried out twice, else ""."""
        return "The refund was carried out twice" if state.done > 1 else ""

    def steps(self, state: State) -> Steps:
        """Yield each step that is possible now."""
        if state.left and self._may_send(state):
            yield (
                f"We send the refund under key {state.key}{' again' if state.sendings else ''}.",
                _send(state),
            )
        for call in state.calls:
            yield from self._arrive(state, call)
        for memory in state.memories:
            if memory.result == "busy":
                done = state._replace(
                    memories=_remember(state, memory._replace(result="done")), done=state.done + 1
                )
                yield (
                    f"The provider carries out the call of key {memory.key}, which it had accepted earlier.",
                    done,
                )
        if state.row == "unknown":
            yield from self._look_up(state)
        if state.sendings:
            yield "Time passes.", _tick(state)

    def _may_send(self, state: State) -> bool:
        age = state.last if self.without == KeyRule.FIRST_AGE else state.first
        return state.row == "planned" or (state.row == "unknown" and age <= LIFE - MARGIN)

    def _arrive(self, state: State, call: Call) -> Steps:
        """Let a call arrive.

        If the provider remembers the call's key, it repeats the result. Otherwise, it carries out the call,
        accepts it for later, or refuses it.
        """
        index = state.calls.index(call)
        state = state._replace(calls=(*state.calls[:index], *state.calls[index + 1 :]))
        what = f"A call of key {call.key} arrives"
        known = next((memory for memory in state.memories if memory.key == call.key), None)
        if known:
            yield from self._answer(state, call, known.result, f"{what}; the provider remembers the key")
            return
        made = Memory(call.key, "done", 0)
        done = state._replace(memories=_remember(state, made), done=state.done + 1)
        yield from self._answer(done, call, "done", f"{what} and is carried out")
        busy = state._replace(memories=_remember(state, made._replace(result="busy")))
        yield from self._answer(busy, call, "busy", f"{what}; the provider accepts it and does not act yet")
        if state.can_refuse:
            refused = state._replace(can_refuse=False)
            yield from self._answer(
                refused, call, "refused", f"{what} and is refused, and the key stays free"
            )
            kept = refused._replace(memories=_remember(refused, made._replace(result="refused")))
            yield from self._answer(kept, call, "refused", f"{what} and is refused")

    def _answer(self, state: State, call: Call, result: str, what: str) -> Steps:
        """Yield a step for each fate of the response: it is lost, it is a server error, or it arrives."""
        yield f"{what}. The answer is lost.", state
        if state.row != "unknown" or call.key != state.key:
            return
        if self.without == KeyRule.SILENCE:
            yield f"{what}. The answer is a 5xx.", _renew(state)
        if result == "done":
            yield f"{what}. The answer says so.", state._replace(row="succeeded")
        if result == "refused":
            heard = state._replace(refusals=state.refusals + 1)
            is_final = heard.refusals == heard.sendings or self.without == KeyRule.OTHER_SENDINGS
            yield f"{what}. The answer says so.", _renew(heard) if is_final else heard

    def _look_up(self, state: State) -> Steps:
        """Look up the refund at the provider.

        If the provider does not find it and enough time has passed, plan the refund again under a new key.
        """
        age = state.first if self.without == KeyRule.LAST_AGE else state.last
        if state.done:
            yield "We look the refund up: it exists.", state._replace(row="succeeded")
        elif age > LIFE + MARGIN or self.without == KeyRule.WAIT:
            yield "We look the refund up: it does not exist. We take a new key.", _renew(state)


def _send(state: State) -> State:
    """Return the state after another call was sent."""
    calls = tuple(sorted((*state.calls, Call(state.key, 0))))
    sent = state._replace(
        row="unknown", last=0, sendings=state.sendings + 1, calls=calls, left=state.left - 1
    )
    return sent if state.sendings else sent._replace(first=0)


def _renew(state: State) -> State:
    """Plan the refund again under a new key."""
    return state._replace(row="planned", key=state.key + 1, first=0, last=0, sendings=0, refusals=0)


def _remember(state: State, memory: Memory) -> tuple[Memory, ...]:
    return tuple(sorted((*(old for old in state.memories if old.key != memory.key), memory)))


def _tick(state: State) -> State:
    """Let a tick pass. Calls that are too old are lost, and the provider forgets keys that are too old."""
    calls = tuple(call._replace(age=call.age + 1) for call in state.calls if call.age < MARGIN)
    memories = tuple(memory._replace(age=memory.age + 1) for memory in state.memories if memory.age < LIFE)
    first, last = min(state.first + 1, OLD), min(state.last + 1, OLD)
    return state._replace(calls=calls, memories=memories, first=first, last=last)
