"""The model of idempotency keys agrees with the code: real requests take each run to the same states."""

from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from checkout.models import Checkout, IdempotencyKey
from config.lib import clock
from payments.models import Operation
from tests import factories
from tests.conftest import Api
from tests.model.protocols.idempotency import BODIES, PROTOCOL, TAKEOVER, Key, State
from tests.model.protocols.replaying.runs import Step, shortest_runs
from tests.model.protocols.replaying.sleepers import ProcessDied, Sleeper, asleep_at_fail_points

POINTS = {"work": "key_claimed", "commit": "answer_made", "store": "answer_made", "": "", "end": ""}


class Replay:
    """An idempotency key. Real requests take the steps of a run on it."""

    def __init__(self, api: Api, order: Checkout, number: int) -> None:
        self.api, self.order, self.key = api, order, f"key {number}"
        self.verb = ""
        self.processes: dict[str, Sleeper] = {}
        self.answers: dict[str, Any] = {}
        self.owners: dict[object, str] = {}
        self.bodies: dict[str, str] = {}

    def take(self, step: Step) -> None:
        """Take a step of the model with real requests."""
        if not step.before.verb:
            self.verb = step.after.verb
        elif step.said.endswith("seconds pass."):
            self.rows().update(created_at=F("created_at") - timedelta(seconds=TAKEOVER))
        else:
            name = next(name for name in BODIES if f"all {name} " in step.said or f"all {name}." in step.said)
            self.go_on(name, step)

    def go_on(self, name: str, step: Step) -> None:
        """Let a call take its next step, as far as the next fail point or the call's answer."""
        if "dies" in step.said:
            self.processes[name].die()
            return
        if "arrives with" in step.said:
            self.answers.pop(name, None)
            self.processes[name] = Sleeper(lambda: self.call(name), ("key_claimed", "answer_made"))
        self.processes[name].go_on()
        self.processes[name].go_on_to(POINTS[step.after.call(name).at])
        if "is lost" in step.said:
            self.answers.pop(name)
        for row in self.rows():
            self.owners.setdefault(row.pk, name)
            self.bodies.setdefault(row.request_digest, BODIES[name])

    def call(self, name: str) -> None:
        """Send the call, and store its answer."""
        is_first = BODIES[name] == "first"
        if self.verb == "create":
            path, body = (
                "checkouts",
                factories.order(merchant_order_id=self.key, metadata={"body": BODIES[name]}),
            )
        else:
            path, body = (
                f"checkouts/{self.order.pk}/capture",
                {} if is_first else {"amount": self.order.amount},
            )
        self.answers[name] = self.api.post(path, body, Idempotency_Key=self.key)

    def rows(self) -> Any:
        return IdempotencyKey.objects.filter(key=self.key)

    def seen(self) -> tuple[object, ...]:
        """Return the key's row, how often the work was done, and the answers, in the form that the model uses."""
        row, found = self.rows().first(), None
        if row is not None:
            owner = self.owners[row.pk]
            is_old = row.status is None and clock.now() - row.created_at >= timedelta(seconds=TAKEOVER)
            found = Key(owner, self.bodies[row.request_digest], owner if row.status else "", is_old)
        made = Checkout.objects.filter(merchant_order_id=self.key).count()
        captures = Operation.objects.filter(payment__subject=self.order.pk, kind="capture", state="succeeded")
        done = made if self.verb == "create" else captures.count()
        return found, done, [self.read_answer(name) for name in BODIES]

    def read_answer(self, name: str) -> str:
        answer = self.answers.get(name)
        if answer is None:
            return ""
        if "Idempotent-Replay" in answer:
            return "replay"
        return "done" if answer.status_code in (200, 201) else str(answer.status_code)

    def end(self) -> None:
        """End the calls. Check that an unexpected exception has not ended a call earlier."""
        for sleeper in self.processes.values():
            sleeper.die()
            assert sleeper.error is None or isinstance(sleeper.error, ProcessDied), repr(sleeper.error)


def expected(state: State) -> tuple[object, ...]:
    """Return the value that `Replay.seen` must return in this state of the model."""
    key = state.key and state.key._replace(is_old=state.key.is_old and not state.key.answer)
    return key, state.done, [state.call(name).answer for name in BODIES]


def describe(step: Step) -> Hashable:
    """Return the kind of a step: its sentence, the verb, the key's row, and whether another call is under way."""
    before = step.before
    name = next((name for name in BODIES if f"all {name} " in step.said), "")
    others = sorted(before.call(other).at for other in BODIES if other != name)
    is_own = before.key is not None and before.key.owner == name
    return step.said, before.verb, before.key and (before.key[1:], is_own), others[-1] not in ("", "end")


RUNS = shortest_runs(PROTOCOL.design, describe)


@pytest.mark.django_db(transaction=True)
def test_code_takes_each_step_of_the_model(api: Api, pay: Callable[..., Checkout]) -> None:
    with asleep_at_fail_points():
        for number, run in enumerate(RUNS):
            order = factories.checkout(api.merchant)
            replay = Replay(api, pay(order) if run[0].after.verb == "capture" else order, number)
            story = list[str]()
            for step in run:
                story.append(step.said)
                replay.take(step)
                assert replay.seen() == expected(step.after), "\n".join([*story, str(step.after)])
            replay.end()
