"""A model of the idempotency key of a POST, with simultaneous calls, lost answers, and processes that die.

When an order is created, the order and its key are committed in one transaction. A capture commits its key
first, because it calls the provider outside a transaction. The capture itself can be repeated, and takes
effect once.

The model does not include refusals that free the key, or the end of the key after a day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.model.protocols.constants import read_constants
from tests.model.protocols.protocol import Protocol
from tests.model.variants import Variant

TAKEOVER = read_constants().takeover
# The body that each call sends. Calls A and B are the same request, which the merchant repeats.
BODIES = {"A": "first", "B": "first", "C": "other"}


class KeyRule(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    TOGETHER = "the key and the answer of a new order are stored in a second transaction"
    CONSTRAINT = "two calls can store the same key"
    BODY = "the body is not compared with that of the first call"
    OWNER = "a call stores its answer even if another call has taken the key over"
    NO_TAKEOVER = "a key without an answer is never taken over"


class Call(NamedTuple):
    """A call by the merchant. The merchant repeats it until it gets an answer other than 409.

    The values of `at`, the next step, are "" (arrive), work, commit, store, and end (it has an answer). The
    values of `answer`, the latest answer, are "" (no answer yet, or lost), done (carried out), replay, 409 and
    422.
    """

    at: str = ""
    answer: str = ""


class Key(NamedTuple):
    """The row of the key, as all transactions see it. `owner` is the call that has stored the key."""

    owner: str = ""
    body: str = ""
    answer: str = ""  # the call whose answer is stored
    is_old: bool = False


class State(NamedTuple):
    """The key's row, the number of times that the work was done, and the calls."""

    verb: str = ""  # "" (not chosen yet), create, capture
    key: Key | None = None
    done: int = 0
    A: Call = Call()
    B: Call = Call()
    C: Call = Call()
    deaths: int = 1  # number of processes that can still die
    losses: int = 1  # number of answers that can still be lost
    fault: str = ""

    def call(self, name: str) -> Call:
        """Return the call with this name."""
        call: Call = getattr(self, name)
        return call

    def put(self, name: str, call: Call) -> "State":
        """Return the state with a new state of a call."""
        match name:
            case "A":
                return self._replace(A=call)
            case "B":
                return self._replace(B=call)
        return self._replace(C=call)


Steps = Iterator[tuple[str, State]]


@dataclass(frozen=True)
class Idempotency:
    """The model, with at most one rule left out."""

    without: KeyRule | None = None

    def start(self) -> State:
        """Return the first state, without a call and without a key."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return the promise that the state breaks, or ""."""
        if state.done > 1:
            return "One key has made two orders"
        answers = [state.call(name).answer for name in BODIES]
        if is_last and not {"", "409"}.isdisjoint(answers):
            return "A merchant repeats a request, and never gets its answer"
        return state.fault

    def steps(self, state: State) -> Steps:
        """Yield each step that is possible now."""
        if not state.verb:
            yield "The merchant creates orders under one key.", state._replace(verb="create")
            yield "The merchant captures an order under one key.", state._replace(verb="capture")
            return
        if state.key and not state.key.answer and not state.key.is_old:
            yield f"{TAKEOVER} seconds pass.", state._replace(key=state.key._replace(is_old=True))
        for name in BODIES:
            call = state.call(name)
            if call.at == "":
                yield from self._arrive(state, name)
            elif call.at != "end":
                yield from self._go_on(state, name)
                if state.deaths:
                    rest = state._replace(deaths=state.deaths - 1)
                    yield f"The process of call {name} dies.", rest.put(name, Call())

    def _arrive(self, state: State, name: str) -> Steps:
        """Claim the key, or answer from the stored row."""
        said, key = f"Call {name} arrives with the {BODIES[name]} body", state.key
        in_transaction = [other for other in BODIES if state.call(other).at in ("work", "commit")]
        if state.verb == "create" and in_transaction and self.without != KeyRule.CONSTRAINT:
            return  # the database makes the call wait for the transaction that has stored the key
        if key is None or self.without == KeyRule.CONSTRAINT:
            yield f"{said}. It stores the key.", self._claim(state, name)
        elif key.body != BODIES[name] and self.without != KeyRule.BODY:
            yield (
                f"{said}. It gets 422: the key belongs to another request.",
                state.put(name, Call("end", "422")),
            )
        elif key.answer:
            fault = state.fault if key.body == BODIES[name] else "A call got the answer to another request"
            replayed = state.put(name, Call("end", "replay"))._replace(fault=fault)
            yield f"{said}. It gets the stored answer.", replayed
        elif key.is_old and self.without != KeyRule.NO_TAKEOVER:
            yield f"{said}. It takes the key over.", self._claim(state, name)
        else:
            yield f"{said}. It gets 409: the first call has no answer yet.", state.put(name, Call("", "409"))

    def _claim(self, state: State, name: str) -> State:
        """Store the key.

        If the call creates an order, the key is not committed yet, so that no other call can see it.
        """
        claimed = state.put(name, Call("work"))
        return claimed if state.verb == "create" else claimed._replace(key=Key(name, BODIES[name]))

    def _go_on(self, state: State, name: str) -> Steps:
        call = state.call(name)
        if call.at == "work" and state.verb == "create":
            yield f"Call {name} writes the order.", state.put(name, Call("commit"))
        elif call.at == "work":
            yield f"Call {name} captures.", state.put(name, Call("store"))._replace(done=1)
        elif call.at == "commit" and self.without == KeyRule.TOGETHER:
            yield (
                f"Call {name} commits the order.",
                state.put(name, Call("store"))._replace(done=state.done + 1),
            )
        elif call.at == "commit":
            stored = state._replace(key=Key(name, BODIES[name], name), done=state.done + 1)
            yield from _answer(stored, name, f"Call {name} commits the order with the key and the answer")
        else:
            yield from _answer(self._store(state, name), name, f"Call {name} stores its answer")

    def _store(self, state: State, name: str) -> State:
        """Store the answer under the key if the call still owns the key."""
        if state.verb == "create":
            return state._replace(key=Key(name, BODIES[name], name))
        key = state.key
        if key is None or (key.owner != name and self.without != KeyRule.OWNER):
            return state
        fault = "A stored answer was replaced by another" if key.answer not in ("", name) else state.fault
        return state._replace(key=key._replace(answer=name), fault=fault)


def _answer(state: State, name: str, said: str) -> Steps:
    yield f"{said}. The answer arrives.", state.put(name, Call("end", "done"))
    if state.losses:
        yield f"{said}. The answer is lost.", state.put(name, Call())._replace(losses=state.losses - 1)


def _vary(without: KeyRule, rule: str) -> Variant:
    return Variant(Idempotency(without), Idempotency(), without.value, rule)


PROTOCOL = Protocol(
    title="An idempotency key of the API",
    summary="A merchant repeats a POST under the same `Idempotency-Key`, because the answer was lost, or sends it "
    "twice at the same time. The request is carried out once (rules `idempotency.*`). A new order is written in the "
    "same transaction as its key. A capture commits the key first, and is safe to repeat "
    "([decision 0013](decisions/0013-every-act-can-be-repeated.md)).",
    code=("checkout/api/idempotency.py", "checkout/api/statements.py", "checkout/models/calls.py"),
    drawing=f"""
  POST with a key ──► insert the key ──► inserted ──► carry out ──► store the answer, and send it
                        │
                        ├── another transaction inserts the same key: wait for its end
                        │
                        └── the key exists
                               ├── other method, path or body ──────────► 422
                               ├── it has an answer ────────────────────► the stored answer
                               ├── no answer for less than {TAKEOVER} seconds ──► 409
                               └── no answer for longer ────────────────► take it over, carry out
""",
    invariants=(
        "One key makes one order.",
        "A call with another body is not carried out, and does not get the answer to the first body.",
        "A stored answer is never replaced.",
        "If a process dies, the merchant can repeat the request until it is carried out.",
    ),
    design=Idempotency(),
    variants=(
        _vary(KeyRule.TOGETHER, "The order, the key and the answer are committed in one transaction."),
        _vary(KeyRule.CONSTRAINT, "A unique constraint allows one row for each key of a merchant."),
        _vary(KeyRule.BODY, "The row has a digest of method, path and body, which is compared."),
        _vary(
            KeyRule.OWNER,
            "A call stores its answer in the row that it has inserted, not in a later row of the key.",
        ),
        _vary(
            KeyRule.NO_TAKEOVER, f"After {TAKEOVER} seconds, a call with the same body takes the key over."
        ),
    ),
)
