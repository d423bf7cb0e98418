"""The machine of the database is lost under load, and the database is restored to an earlier time.

The bank keeps its data. The restored database lacks the last minute before the loss, or the last five minutes
in `make drill`. No matter what happened in this time, no card is charged or refunded twice, and no captured
order is reported as voided.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from config import startup_checks
from tests.journeys import drill, polling
from tests.journeys.drill import Charge, Drill
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
LOST_SECONDS = float(os.environ.get("DRILL_SECONDS", "60"))
# How many seconds the closed service must not change any data. An open service runs every pump within this time.
CLOSED_SECONDS = 8
# The number of orders of each kind.
EACH = 3
WRITTEN = """
SELECT (SELECT count(*) FROM payments_operation), (SELECT count(*) FROM checkout_change),
    (SELECT count(*) FROM webhooks_event), (SELECT count(*) FROM webhooks_attempt)
"""
CALLS = "SELECT count(*) FROM bank_call"
OPEN = "SELECT count(*) FROM payments_operation WHERE ended_at IS NULL"
VOIDED = "SELECT checkout_uuid::text FROM webhooks_event WHERE type = 'checkout.voided'"
UNKNOWN = "SELECT subject::text FROM payments_discrepancy WHERE kind = 'unknown_order' AND closed_at IS NULL"
FITS = "from config import startup_checks as checks; assert not checks.problems_of_database()"


class Shop:
    """A merchant's backend that remembers the responses about its orders. Its customers can continue to buy."""

    def __init__(self, service: Service) -> None:
        self.service, self.merchant = service, service.new_merchant()
        self.told: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        self.before = self._before()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def _before(self) -> dict[str, list[str]]:
        """Create orders for `act`. Map the name of each action to the ids of its orders."""
        shop = self.merchant
        return {
            "refund": [shop.captured() for _ in range(EACH)],
            "reimburse": [self._split() for _ in range(EACH)],
            "pay and capture": [shop.create() for _ in range(EACH)],
            "pay alone": [shop.create() for _ in range(EACH)],
        }

    def _split(self) -> str:
        uuid = self.merchant.create()
        body = {"shares": [{"name": "Finn", "amount": 2000}]}
        assert self.merchant.call("POST", f"sandbox/v1/checkouts/{uuid}/pay", body).status_code == 200
        self.merchant.capture(uuid)
        return uuid

    def hold_some(self) -> None:
        """Pay further orders. Call this just before `act`, because a hold ends after two minutes."""
        self.before |= {act: [self.merchant.held() for _ in range(EACH)] for act in ("capture", "cancel")}

    def act(self) -> None:
        """Perform the actions that are lost, so that the restored database will not contain them."""
        for uuid in self.before["capture"]:
            self.merchant.capture(uuid)
        for uuid in self.before["cancel"]:
            self.merchant.cancel(uuid)
        for uuid in self.before["refund"]:
            self.refs[uuid] = self.merchant.refund(uuid)
        for uuid in self.before["reimburse"]:
            assert self.merchant.call("POST", f"sandbox/v1/checkouts/{uuid}/pay-share", {}).status_code == 200
        for uuid in self.before["pay and capture"]:
            self.merchant.pay(uuid)
            self.merchant.capture(uuid)
        for uuid in self.before["pay alone"]:
            self.merchant.pay(uuid)

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _go_on(self) -> None:
        """Sell and capture orders, one after another, until the shop is closed."""
        with contextlib.suppress(requests.RequestException, AssertionError):
            while not self._is_over.is_set():
                uuid = self.merchant.held()
                self.merchant.capture(uuid)
                self.told[uuid] = "captured"
                time.sleep(0.1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Drill, Service]]:
    with drill.running(tmp_path_factory.mktemp("drill")) as parts:
        yield parts


def at_rest(whole: Drill) -> None:
    polling.until(lambda: whole.rows(OPEN) == [(0,)], within=90, what="the end of every operation")


def row_counts(whole: Drill) -> Any:
    return whole.rows(WRITTEN), whole.rows(CALLS, of_bank=True)


@pytest.mark.rule("restore.closed", "restore.repair", "restore.unknown_orders", "restore.refund")
def test_after_a_restore_no_money_moves_twice_and_no_capture_is_reported_as_voided(
    world: tuple[Drill, Service],
) -> None:
    whole, service = world
    shop, selling = Shop(service), Shop(service)
    selling.open()
    whole.machine.back_up()
    shop.hold_some()
    (moment,) = whole.rows("SELECT clock_timestamp()::text")[0]
    lost_at = time.monotonic()
    time.sleep(1)
    shop.act()
    time.sleep(max(0, LOST_SECONDS - (time.monotonic() - lost_at)))
    whole.lose_the_machine()
    selling.close()
    before = whole.charges()

    whole.machine.restore(moment)
    whole.start_again()
    service.command("shell", "--no-imports", "--command", FITS)
    assert whole.readyz() == (503, f"{startup_checks.CLOSED}\n")
    assert shop.merchant.post("checkouts", {}).status_code == 503
    counts = row_counts(whole)
    time.sleep(CLOSED_SECONDS)
    assert row_counts(whole) == counts, "something moved while it was closed"

    said = service.command("reconcile", "--repair")
    print(said)
    polling.until(lambda: whole.readyz() == (200, "ready\n"), within=10, what="opening")
    at_rest(whole)
    repeat_all(shop)
    at_rest(whole)
    service.prove_ledger()
    compare(whole, before)
    known = {
        uuid for uuid in selling.told if selling.merchant.call("GET", f"merchant/v1/checkouts/{uuid}").ok
    }
    for uuid in known:
        assert selling.merchant.capture(uuid)["status"] == "captured"
    strangers = {charge.payment for charge in before.values() if charge.subject in set(selling.told) - known}
    assert strangers and strangers <= {row[0] for row in whole.rows(UNKNOWN)}
    voided = {row[0] for row in whole.rows(VOIDED)}
    captured = {
        *shop.before["capture"],
        *shop.before["pay and capture"],
        *shop.before["refund"],
        *selling.told,
    }
    assert not voided & captured
    assert "0 discrepancies" in service.command("reconcile")


def repeat_all(shop: Shop) -> None:
    """Repeat each request from the lost time, like a backend that does not know the outcome of its requests."""
    merchant = shop.merchant
    for act in ("capture", "pay and capture"):
        for uuid in shop.before[act]:
            assert merchant.capture(uuid)["status"] == "captured"
    for uuid in shop.before["cancel"]:
        assert merchant.cancel(uuid)["status"] == "voided"
    for uuid, ref in shop.refs.items():
        answer = merchant.post(f"checkouts/{uuid}/refund", {"merchant_refund_ref": ref})
        assert answer.status_code in (200, 204), answer.text
        refunds = merchant.awaited(uuid, "refunded", within=20)["refunds"]
        assert [refund["merchant_refund_ref"] for refund in refunds] == [ref]
    for uuid in shop.before["reimburse"]:
        assert merchant.read(uuid)["shares"] == {
            "count": 1,
            "pledged_count": 0,
            "paid_count": 1,
            "paid_amount": 2000,
        }
    for uuid in shop.before["pay alone"]:
        answer = merchant.post(f"checkouts/{uuid}/capture", {})
        assert answer.status_code == 409 and answer.json()["error"]["code"] == "not_capturable"


def compare(whole: Drill, before: dict[str, Charge]) -> None:
    """Fail unless the bank's charges are the same as `before`. A hold may have been released since then."""
    after = whole.charges()
    assert set(after) == set(before)
    for payment, charge in after.items():
        assert charge.captures <= 1
        was = before[payment]
        if was.state == "held":
            assert charge.state in ("held", "voided")
        else:
            assert charge == was
