"""If a process is killed at a fail point, the pumps finish the remaining work within fifteen seconds."""

import contextlib
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest
import requests

from tests.chaos.world import World
from tests.journeys import polling
from tests.journeys.merchant import Merchant
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
ENDS_WITHIN = 15.0
STATUS = "SELECT status FROM checkout_checkout WHERE id = %s"
OPEN = """
SELECT 1 FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
WHERE p.checkout_uuid = %s AND o.ended_at IS NULL
"""
ENDED = """
SELECT extract(epoch FROM max(o.ended_at))::float
FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id WHERE p.checkout_uuid = %s
"""
CHARGE = """
SELECT state, refunded_amount FROM bank_charge c JOIN bank_call l ON l.charge_id = c.id
WHERE l.key = ANY(%s) LIMIT 1
"""
KEYS = """
SELECT o.id FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id WHERE p.checkout_uuid = %s
"""
EVENTS = "SELECT type FROM webhooks_event WHERE checkout_uuid = %s ORDER BY created_at"

HELD, TOLD = ["checkout.authorized"], ["checkout.authorized", "checkout.voided"]


class Ending(NamedTuple):
    """The expected end: the checkout's status, its charge's state and refunded amount at the bank, and its events."""

    status: str
    charge: tuple[str, int]
    events: list[str]


AUTHORIZED = Ending("authorized", ("held", 0), HELD)
CAPTURED = Ending("captured", ("captured", 0), HELD)
VOIDED = Ending("voided", ("voided", 0), TOLD)
REFUNDED = Ending("refunded", ("captured", 9000), HELD)


def pay(merchant: Merchant, checkout_uuid: str) -> object:
    return merchant.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/pay", {})


def verb(name: str, **body: str) -> Callable[[Merchant, str], object]:
    return lambda merchant, checkout_uuid: merchant.post(f"checkouts/{checkout_uuid}/{name}", body)


capture, cancel = verb("capture"), verb("cancel")


def refund(merchant: Merchant, checkout_uuid: str) -> object:
    return merchant.refund(checkout_uuid)


def capture_under_a_key(merchant: Merchant, checkout_uuid: str) -> object:
    url = f"{merchant.base_url}/api/merchant/v1/checkouts/{checkout_uuid}/capture"
    headers = merchant.headers | {"Idempotency-Key": checkout_uuid}
    return requests.post(url, json={}, headers=headers, timeout=20)


# For each fail point: the checkout's state before the crash, the call that kills a process, and the expected
# end.
CRASHES: dict[str, tuple[str, Callable[[Merchant, str], object], Ending]] = {
    "before_call.authorize": ("created", pay, AUTHORIZED),
    "after_call.authorize": ("created", pay, AUTHORIZED),
    "before_commit.authorize": ("created", pay, AUTHORIZED),
    "after_commit.authorize": ("created", pay, AUTHORIZED),
    "event_written.checkout.authorized": ("created", pay, AUTHORIZED),
    "event_committed.checkout.authorized": ("created", pay, AUTHORIZED),
    "before_call.capture": ("held", capture, CAPTURED),
    "after_call.capture": ("held", capture, CAPTURED),
    "before_commit.capture": ("held", capture, CAPTURED),
    "after_commit.capture": ("held", capture, CAPTURED),
    "key_claimed": ("held", capture_under_a_key, AUTHORIZED),
    "answer_made": ("held", capture_under_a_key, CAPTURED),
    "answer_kept": ("held", capture_under_a_key, CAPTURED),
    "event_committed.checkout.voided": ("held", cancel, VOIDED),
    "before_call.void": ("held", cancel, VOIDED),
    "after_call.void": ("held", cancel, VOIDED),
    "before_commit.void": ("held", cancel, VOIDED),
    "after_commit.void": ("held", cancel, VOIDED),
    "before_call.refund": ("captured", refund, REFUNDED),
    "after_call.refund": ("captured", refund, REFUNDED),
    "before_commit.refund": ("captured", refund, REFUNDED),
}


class Crash:
    """The death of one process, and the further history of the checkout that the process was working on."""

    def __init__(self, world: World, merchant: Merchant, point: str) -> None:
        self.point = self._aim = point
        self._world, self._merchant = world, merchant
        origin, self._act, self._ending = CRASHES[point]
        self.checkout_uuid = getattr(merchant, origin if origin != "created" else "create")()
        if "." in point:
            self._aim = f"{point}.{self.checkout_uuid}"
        self.seen: Ending | None = None
        self.died_at = self.ended_at = 0.0  # Unix times. The database runs on the same machine and clock.

    def run(self) -> None:
        """Make the call that kills a process, and return after the process has died."""
        self._world.arm(self._aim, "kill")
        with contextlib.suppress(requests.RequestException):
            self._act(self._merchant, self.checkout_uuid)
        polling.until(lambda: not self._world.is_armed(self._aim), within=10, what=f"death at {self.point}")
        self.died_at = time.time()

    def is_over(self) -> bool:
        """Return whether the work has ended. If it has, read the time of its end from the database and store this time.

        The work can have ended long before this check, because other crashes happen between two checks.
        """
        rows, checkout_uuid = self._world.rows, self.checkout_uuid
        keys = [row[0] for row in rows(KEYS, checkout_uuid)]
        charges = rows(CHARGE, keys, of_bank=True)
        events = [row[0] for row in rows(EVENTS, checkout_uuid)]
        self.seen = Ending(rows(STATUS, checkout_uuid)[0][0], charges[0] if charges else ("", 0), events)
        if not self.ended_at and self.seen == self._ending and not rows(OPEN, checkout_uuid):
            self.ended_at = rows(ENDED, checkout_uuid)[0][0]
        return bool(self.ended_at)


# Groups of fail points that are tested together. Each crash kills a web process or a worker. A process that
# survives can finish the work that the other crashes have left.
WEB = [point for point in CRASHES if not point.endswith((".void", ".refund"))]
WORKER = [[point for point in CRASHES if point.endswith(kind)] for kind in (".void", ".refund")]


def survive(whole: tuple[World, Service], points: list[str]) -> None:
    """Kill a process at each fail point. Check that all work ends automatically and in time."""
    world, service = whole
    merchant = service.new_merchant()
    crashes = [Crash(world, merchant, point) for point in points]
    for number, crash in enumerate(crashes, start=1):
        crash.run()
        for happened in crashes[:number]:
            happened.is_over()
    end = time.monotonic() + ENDS_WITHIN
    while time.monotonic() < end and False in {crash.is_over() for crash in crashes}:
        time.sleep(0.2)
    assert {crash.point: crash.seen for crash in crashes if not crash.ended_at} == {}
    seconds = {crash.point: crash.ended_at - crash.died_at for crash in crashes}
    assert {point: taken for point, taken in seconds.items() if taken > ENDS_WITHIN} == {}
    service.prove_ledger()


@pytest.mark.rule("doubt.crash")
class TestAProcessKilled:
    @pytest.mark.rule("event.outbox")
    def test_at_any_point_of_a_request_leaves_work_that_the_pumps_complete(
        self, whole: tuple[World, Service]
    ) -> None:
        survive(whole, WEB)

    @pytest.mark.parametrize("points", WORKER, ids=["void", "refund"])
    def test_at_any_point_of_a_pump_leaves_work_that_the_next_pump_completes(
        self, whole: tuple[World, Service], points: list[str]
    ) -> None:
        survive(whole, points)

    def test_before_its_verb_started_does_not_block_a_new_call(self, whole: tuple[World, Service]) -> None:
        world, service = whole
        merchant = service.new_merchant()
        crash = Crash(world, merchant, "key_claimed")
        crash.run()
        polling.until(world.is_ready, within=60, what="the web that the supervisor starts")
        assert merchant.capture(crash.checkout_uuid)["status"] == "captured"
