"""If a sender makes no progress, its process ends, and another process sends the deliveries that are due."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from config.lib.process import liveness
from tests.waiting import wait_for
from tests.webhooks.test_delivery_sender import SlowClaims, emit, running, subscribe
from webhooks import delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("environment.liveness")]
SENDER = "webhooks-sender"
# If a sender gives no sign of life for this many seconds, it counts as hanging. Even an idle sender gives a
# sign of life every second.
LONG = 3.0


def is_reported_stuck() -> bool:
    return SENDER in liveness.stuck_threads(LONG)


@contextmanager
def released_after(goes_on: threading.Event) -> Iterator[None]:
    """After the block, check that the sender is reported as hanging. Set `goes_on`, and check that the report ends."""
    try:
        yield
        wait_for(is_reported_stuck, within=30)
    finally:
        goes_on.set()
    wait_for(lambda: not is_reported_stuck(), within=30)


def test_a_sender_with_a_blocked_loop_is_detected() -> None:
    goes_on = threading.Event()
    with running() as sender, released_after(goes_on):
        sender._loop.call_soon_threadsafe(goes_on.wait, 60)


def test_a_sender_with_a_blocked_claim_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = SlowClaims()
    claims.are_slow = True
    monkeypatch.setattr(delivery, "claim", claims)
    emit(subscribe("http://127.0.0.1:9/hooks"))
    with running(), released_after(claims.goes_on):
        assert claims.begun.wait(30)


def test_an_idle_sender_still_reports_that_it_is_alive() -> None:
    with running():
        wait_for(lambda: SENDER in liveness.sign_ages(), within=30)
        first = liveness._signs[SENDER]
        wait_for(lambda: liveness._signs[SENDER] > first, within=30)


def test_a_stopped_sender_is_not_watched() -> None:
    with running():
        wait_for(lambda: SENDER in liveness.sign_ages(), within=30)
    assert SENDER not in liveness.sign_ages()
