"""The case that counts how often a server repeats or looks up a capture that stays unresolved."""

from typing import Any

import pytest

from checkout import expiry
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.models import Trial
from portal.trials import verdicts
from tests import mates
from tests.conftest import Api
from tests.portal.trials import backend
from tests.portal.trials.backend import Backend, Idle, lapse, order_of, words

pytestmark = [pytest.mark.django_db, pytest.mark.rule("trial.unresolved")]


class Asking(Backend):
    """A backend that repeats the capture `captures` times after its 504, and reads a path `reads` times."""

    def __init__(self, api: Api, reads: int, captures: int = 0, path: str = "checkouts/{uuid}") -> None:
        super().__init__(api)
        self.reads, self.captures, self.path = reads, captures, path

    def take(self, event: dict[str, Any]) -> int:
        if event["type"] == "checkout.authorized":
            assert self.capture(event).status_code == 504
            for _ in range(self.captures):
                assert self.capture(event).status_code == 409
            for _ in range(self.reads):
                self.api.get(self.path.format(uuid=event["data"]["checkout_uuid"]))
        return 200


def end_hold(trial: Trial) -> None:
    """End the hold now, and let the pump prove that no capture happened."""
    checkout = order_of(trial)
    if checkout.status == "authorized":
        Checkout.objects.filter(pk=checkout.pk).update(capture_before=clock.now())
        mates.pump(checkout.pk)
        expiry.expire_one_if_due(checkout.pk)


def test_passes_if_the_server_asks_often_enough(acme: Merchant, api: Api) -> None:
    trial = backend.walk(
        acme, "unresolved", Asking(api, reads=verdicts.MIN_REPEATS - 1, captures=1), end_hold
    )
    assert trial.has_passed, (trial.reason, trial.evidence)
    assert order_of(trial).status == "voided"
    told = words(trial)
    assert "Your server called capture; we answered 504 outcome_unknown" in told
    assert "Until then, your server asked again 5 times" in told


@pytest.mark.parametrize(
    ("reads", "path", "asked"),
    [
        (0, "checkouts/{uuid}", "not once"),
        (1, "checkouts/{uuid}", "once"),
        (4, "checkouts/{uuid}", "4 times"),
        (9, "checkouts", "not once"),
    ],
)
def test_fails_if_the_server_asks_too_rarely(
    acme: Merchant, api: Api, reads: int, path: str, asked: str
) -> None:
    trial = backend.walk(acme, "unresolved", Asking(api, reads, path=path), end_hold)
    assert trial.has_passed is False
    assert trial.reason.startswith(
        f"While its capture was unresolved, your server asked again {asked}. Repeat the capture"
    )


def test_fails_if_the_server_does_not_wait(acme: Merchant, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "MAX_REPEATS", 7)
    trial = backend.walk(acme, "unresolved", Asking(api, reads=8), end_hold)
    assert trial.has_passed is False and "Wait for Retry-After between two calls." in trial.reason


def test_fails_if_the_server_does_not_capture(acme: Merchant, api: Api) -> None:
    trial = backend.walk(acme, "unresolved", Idle(api), lapse)
    assert trial.has_passed is False and trial.reason.startswith("No capture came within two minutes.")
