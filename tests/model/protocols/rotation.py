"""A model of the rotation of a signing secret. The receiver learns the new secret some time later.

Secrets are numbered in the order in which they were made. Time passes in hours. An attempt takes at most 15
seconds, so no hour passes while an attempt is under way. The secrets of an attempt are read when it is
claimed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.model.protocols.protocol import Protocol
from tests.model.protocols.replaying.moves import Move, steps_of
from tests.model.variants import Variant

GRACE = 2  # hours
MAX_SIGNING = 3
LAST = 4  # the number of the last secret


class Break(StrEnum):
    """The rules that a variant of the model can leave out. Each value describes the model without the rule."""

    OLD_SECRETS = "only the newest secret signs"
    GRACE = "a rotation ends the previous secret at once"
    THREE = "a repeated rotation ends the secret before the previous one"
    REFUSAL = "a rotation is not refused while three secrets sign"
    FRESH = "a delivery is signed with the secrets of its first attempt"
    BOTH = "the receiver forgets the old secret as soon as it learns the new one"


class Secret(NamedTuple):
    """A secret that signs. `left` is the number of hours until it ends. The newest secret does not end."""

    number: int
    left: int | None = None


class State(NamedTuple):
    """Our secrets, newest first; the secrets that the merchant and the receiver know; and the attempt under way."""

    secrets: tuple[Secret, ...] = (Secret(1),)
    heard: int = 1  # the newest secret that the merchant has received in an answer
    receiver: tuple[int, ...] = (1,)
    attempt: tuple[int, ...] = ()  # the secrets with which the attempt was signed
    first: tuple[int, ...] = ()  # the secrets of the delivery's first attempt, only without FRESH
    losses: int = 1
    fault: str = ""


Moves = Iterator[Move[State]]


@dataclass(frozen=True)
class Rotation:
    """The model, with at most one rule left out."""

    without: Break | None = None

    def start(self) -> State:
        """Return the first state: one secret signs, and the receiver knows it."""
        return State()

    def problem(self, state: State, is_last: bool) -> str:
        """Return the invariant that the state breaks, or ""."""
        return state.fault

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield each step that is possible now."""
        return steps_of(self.moves(state))

    def moves(self, state: State) -> Moves:
        """Yield each step that is possible now, with its name."""
        yield from self._rotations(state)
        yield from self._receiver(state)
        if state.attempt:
            yield _arrive(state)
            said = "The receiver is down. The delivery waits for its next attempt."
            yield Move(("down",), said, state._replace(attempt=()))
        else:
            yield self._claim(state)
            yield from self._pass_hour(state)

    def _claim(self, state: State) -> Move[State]:
        signs = self._signing(state)
        ended = set(signs) - {secret.number for secret in state.secrets}
        after = state._replace(
            attempt=signs,
            first=signs if self.without == Break.FRESH else (),
            fault=f"Secret {min(ended)} signs after its end" if ended else "",
        )
        return Move(("claim",), f"The delivery is claimed, and signed with {_name(signs)}.", after)

    def _rotations(self, state: State) -> Moves:
        newest = state.secrets[0].number
        if newest in state.receiver and len(state.secrets) > 1:
            after = state._replace(secrets=state.secrets[:1])
            yield Move(("revoke",), "The merchant ends the previous secrets.", after)
        if len(state.secrets) >= MAX_SIGNING and self.without != Break.REFUSAL:
            said = "The merchant rotates the secret, and is refused: three secrets sign."
            yield Move(("refused",), said, state)
        elif newest < LAST:
            after = state._replace(secrets=self._rotate(state))
            said = f"The merchant rotates the secret{' again' if state.heard < newest else ''}"
            heard = after._replace(heard=newest + 1)
            yield Move(("rotate", "heard"), f"{said}, and gets secret {newest + 1}.", heard)
            if state.losses:
                lost = after._replace(losses=state.losses - 1)
                yield Move(("rotate", "lost"), f"{said}: secret {newest + 1}. The answer is lost.", lost)

    def _rotate(self, state: State) -> tuple[Secret, ...]:
        """Return our secrets after a rotation."""
        newest, *older = state.secrets
        previous = [] if self.without == Break.GRACE else [newest._replace(left=GRACE)]
        kept = [] if self.without == Break.THREE else older
        return (Secret(newest.number + 1), *previous, *kept)

    def _signing(self, state: State) -> tuple[int, ...]:
        """Return the numbers of the secrets that sign an attempt if it is claimed now."""
        numbers = tuple(secret.number for secret in state.secrets)
        if self.without == Break.FRESH and state.first:
            return state.first
        return numbers[:1] if self.without == Break.OLD_SECRETS else numbers[:MAX_SIGNING]

    def _receiver(self, state: State) -> Moves:
        if state.heard not in state.receiver:
            old = () if self.without == Break.BOTH else state.receiver
            said = f"The receiver learns secret {state.heard}."
            yield Move(("learn", str(state.heard)), said, state._replace(receiver=(state.heard, *old)))
        elif len(state.receiver) > 1 and not state.attempt:
            # According to the guide, merchants wait for a minute. An attempt that was claimed earlier has ended by
            # then.
            said = f"A minute later, the receiver forgets all secrets but secret {state.heard}."
            yield Move(("forget",), said, state._replace(receiver=(state.heard,)))

    def _pass_hour(self, state: State) -> Moves:
        """Let an hour pass, but only if the receiver then still knows a secret that signs.

        The model assumes that the receiver always learns a new secret in time.
        """
        left = [
            secret if secret.left is None else secret._replace(left=secret.left - 1)
            for secret in state.secrets
        ]
        after = state._replace(secrets=tuple(secret for secret in left if secret.left != 0))
        if after != state and {secret.number for secret in after.secrets} & set(state.receiver):
            yield Move(("hour",), "An hour passes.", after)


def _arrive(state: State) -> Move[State]:
    after = state._replace(attempt=(), first=())
    if set(state.attempt) & set(state.receiver):
        return Move(("verify",), "The delivery arrives, and its signature is verified.", after)
    fault = f"The receiver knows {_name(state.receiver)}, and refuses a delivery signed with {_name(state.attempt)}"
    said = "The delivery arrives. No signature is right."
    return Move(("refuse",), said, after._replace(fault=fault))


def _name(numbers: tuple[int, ...]) -> str:
    return f"secret {numbers[0]}" if len(numbers) == 1 else f"secrets {' and '.join(map(str, numbers))}"


def _variant(without: Break, rule: str) -> Variant:
    return Variant(Rotation(without), Rotation(), without, rule)


PROTOCOL = Protocol(
    title="The rotation of a signing secret",
    summary="A merchant replaces the secret that signs the deliveries, and the receiver learns the new secret some "
    "time later ([decision 0041](decisions/0041-up-to-three-secrets-sign.md)). A delivery can be on its way at that "
    "moment, and the answer to the rotation can be lost.",
    code=(
        "webhooks/subscriptions.py",
        "webhooks/statements.py",
        "webhooks/headers.py",
        "webhooks/signing.py",
    ),
    drawing="""
  rotate ──► new secret ─────────────────────────────────────────► signs until the next rotation
               previous secret ──────────── two hours ─────────► ended
               the one before it ── the rest of its two hours ──► ended

  three secrets sign: a further rotation is refused, until the oldest has ended

  claim ──► signed with the secrets that sign now ──► sent within 15 s ──► verified,
                                                      if the receiver knows one of them

  receiver ── knows the old secret ── adds the new one ── a minute later, removes the old one
""",
    invariants=(
        "The receiver verifies every delivery, if it adds the new secret before its own secret ends, and removes the "
        "old secret a minute after it has added the new one.",
        "A secret that has ended signs no delivery that is claimed after its end.",
    ),
    design=Rotation(),
    variants=(
        _variant(Break.OLD_SECRETS, "Each secret signs until its end, next to the newest secret."),
        _variant(Break.GRACE, "The previous secret signs for two more hours."),
        _variant(
            Break.THREE,
            "A rotation ends no secret early, so a rotation whose answer is lost can be repeated.",
        ),
        _variant(
            Break.REFUSAL,
            "A rotation is refused while three secrets sign, because the oldest would not sign.",
        ),
        _variant(Break.FRESH, "Each claim reads the secrets again."),
        _variant(
            Break.BOTH, "A receiver knows both secrets until the attempts that were on their way have ended."
        ),
    ),
)
