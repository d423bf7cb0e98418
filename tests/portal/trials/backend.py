"""A merchant's backend in this process, whose behaviour a test chooses, and functions that run trials quickly."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
import pytest

from checkout import expiry
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.models import Membership, Role, Trial
from portal.trials import trial_runs
from portal.trials.cases import CASES
from tests import factories
from tests.conftest import Api
from tests.portal import stage
from webhooks import delivery, endpoint_tests
from webhooks.models import Delivery, Subscription
from webhooks.transport import Answer

TURNS = 12


class Backend:
    """A backend that captures on checkout.authorized, handles each event once, and answers 200."""

    def __init__(self, api: Api) -> None:
        self.api, self.seen = api, set[str]()
        self.got: list[dict[str, Any]] = []

    def receive(self, event: dict[str, Any]) -> int:
        """Receive an event, and return the status of the response."""
        self.got.append(event)
        if event["id"] in self.seen:
            return 200
        self.seen.add(event["id"])
        return self.take(event)

    def take(self, event: dict[str, Any]) -> int:
        """Handle an event that is received for the first time."""
        if event["type"] == "checkout.authorized":
            self.capture(event)
        return 200

    def capture(self, event: dict[str, Any], **headers: str) -> Any:
        return self.api.post(f"checkouts/{event['data']['checkout_uuid']}/capture", **headers)


class Forgetful(Backend):
    """A backend that captures each time it receives an event, even if it received the same event before."""

    def receive(self, event: dict[str, Any]) -> int:
        return self.take(event)


class Idle(Backend):
    """A backend that answers 200 but does not capture."""

    def take(self, event: dict[str, Any]) -> int:
        return 200


class Cross(Backend):
    """A backend that answers 409 to an event that it receives again."""

    def receive(self, event: dict[str, Any]) -> int:
        return 409 if event["id"] in self.seen else super().receive(event)


class Refusing(Backend):
    """A backend that answers 400 to everything, as if its secret were wrong."""

    def receive(self, event: dict[str, Any]) -> int:
        return 400


def answer_directly(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    """Pass the sandbox's own delivery attempts directly to the backend, without a network."""

    def answered(claimed: delivery.Claimed, body: bytes, _: float) -> Answer:
        status = backend.receive(orjson.loads(body))
        return Answer(status, None if status < 300 else f"HTTP {status}", "", 340)

    monkeypatch.setattr(endpoint_tests, "_await_answer", answered)


def begin(merchant: Merchant, name: str, order: UUID | None = None) -> Trial:
    if not Subscription.objects.filter(merchant=merchant).exists():
        factories.subscribe(merchant, url=stage.URL)
    people = Membership.objects.filter(merchant=merchant)
    somebody = people.first() or stage.person(merchant, Role.DEVELOPER)
    return trial_runs.begin(merchant, CASES[name], somebody.user, order).trial


def walk(
    merchant: Merchant, name: str, backend: Backend, meanwhile: Callable[[Trial], None] = lambda _: None
) -> Trial:
    """Run a case to its end. In each turn, the sandbox takes a step, and the backend gets all deliveries."""
    trial = begin(merchant, name)
    for _ in range(TURNS):
        trial_runs.take_step(Trial.objects.select_related("merchant").get(pk=trial.pk))
        trial.refresh_from_db()
        if trial.ended_at:
            break
        send_due(backend)
        meanwhile(trial)
    return trial


def send_due(backend: Backend) -> None:
    """Let the backend answer all waiting deliveries, even those that are not due yet."""
    Delivery.objects.filter(status="pending", lease_token=None).update(next_attempt_at=clock.now())
    for claimed in delivery.claim(slots=20, general_slots=20):
        status = backend.receive(orjson.loads(claimed.body))
        lease = (claimed.delivery_id, claimed.lease_token)
        error = None if status < 300 else f"HTTP {status}"
        delivery.record_results([delivery.Result(*lease, status, error, 340)])


def let_lapse(checkout: Checkout) -> None:
    """Let the two minutes of a hold pass, and run the pump that lets the hold lapse."""
    factories.make_late(checkout)
    expiry.expire_one_if_due(checkout.pk)


def order_of(trial: Trial) -> Checkout:
    assert trial.checkout_uuid is not None
    return Checkout.objects.get(pk=trial.checkout_uuid)


def lapse(trial: Trial) -> None:
    """Let the trial's hold lapse, unless its order is no longer held."""
    checkout = order_of(trial)
    if checkout.status == "authorized":
        let_lapse(checkout)


def words(trial: Trial) -> list[str]:
    return [line["words"] for line in trial.evidence]
