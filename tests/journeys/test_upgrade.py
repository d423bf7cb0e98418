"""An upgrade under load: two releases run side by side on the schema of the new one, and no order fails.

The old release is the commit in release_before.txt. The new release is this tree with additional migrations
(later.py), so that the upgrade always has a migration to run.
"""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from config.local import engines, environment
from tests import factories
from tests.journeys import later, polling, service
from tests.journeys.deployment import Deployment, Part
from tests.journeys.receiver import Receiver
from tests.journeys.service import ROOT
from webhooks.models import EventType

pytestmark = [pytest.mark.journey, pytest.mark.long, pytest.mark.rule("environment.migrations")]
BEFORE = (ROOT / "tests" / "journeys" / "release_before.txt").read_text().strip()
SHOPS = 3
# How many seconds each combination of old and new processes runs under load.
SIDE_BY_SIDE = 5.0
WORKER = "-m celery --quiet --app config.celery worker --without-gossip --without-mingle --loglevel INFO"
BEAT = "-m celery --quiet --app config.celery beat --schedule"


class Shop(threading.Thread):
    """A merchant's backend. If a web process does not answer, it sends the request to the other web process."""

    def __init__(self, addresses: list[str], key: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self._addresses = addresses
        self._http = requests.Session()
        self._http.trust_env = False
        grant = {"grant_type": "client_credentials"} | {
            name: key[name] for name in ("client_id", "client_secret")
        }
        token = self.ask("POST", "/oauth/token", grant).json()["access_token"]
        self._http.headers["Authorization"] = f"Bearer {token}"
        self.is_over = threading.Event()
        self.orders = 0
        self.refunds: list[str] = []
        self.captures: list[str] = []
        self.cancels: list[str] = []
        self.failed: list[str] = []

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Send a request and return the response. Retry for at most 30 s while processes start or end."""
        until = time.monotonic() + 30
        while True:
            try:
                return self._http.request(method, f"{self._addresses[0]}{path}", json=body, timeout=20)
            except requests.ConnectionError:
                self._addresses.reverse()
                time.sleep(0.05)
                if time.monotonic() > until:
                    raise

    def verb(self, path: str, body: Any, *wanted: int) -> Any:
        answer = self.ask("POST", f"/api/{path}", body)
        assert answer.status_code in wanted, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()["data"] if answer.content and answer.status_code < 300 else {}

    def run(self) -> None:
        while not self.is_over.is_set():
            try:
                self._order()
            except Exception as error:
                self.failed.append(f"{type(error).__name__}: {error}"[:600])

    def _order(self) -> None:
        uuid = self.verb("merchant/v1/checkouts", factories.order(), 201)["checkout_uuid"]
        # If a process paid the checkout but ended before it answered, the status is 409.
        self.verb(f"sandbox/v1/checkouts/{uuid}/pay", {"card": "4242424242424242"}, 200, 409)
        self.orders += 1
        if self.orders % 4 == 0:
            self.verb(f"merchant/v1/checkouts/{uuid}/cancel", {}, 200)
            self.cancels.append(uuid)
            return
        self.verb(f"merchant/v1/checkouts/{uuid}/capture", {}, 200)
        self.captures.append(uuid)
        if self.orders % 4 < 3:
            return
        ref = {"merchant_refund_ref": f"R-{uuid4().hex[:8]}"}
        self.verb(f"merchant/v1/checkouts/{uuid}/refund", ref, 204)
        self.refunds.append(uuid)

    def status(self, uuid: str) -> str:
        """Return a checkout's status. If the rate limit refuses the call, repeat the call."""
        while (answer := self.ask("GET", f"/api/merchant/v1/checkouts/{uuid}")).status_code == 429:
            time.sleep(0.2)
        return str(answer.json()["data"]["status"])

    def settled(self, *, within: float) -> set[str]:
        """Wait until all refunds have ended. Return the different statuses of their checkouts."""
        until = time.monotonic() + within
        left, found = set(self.refunds), set[str]()
        while left and time.monotonic() < until:
            now = {uuid: self.status(uuid) for uuid in left}
            left = {uuid for uuid, status in now.items() if status == "refunding"}
            found |= {status for uuid, status in now.items() if uuid not in left}
        return found | (
            {f"{len(left)} of {len(self.refunds)} under way: {sorted(left)[:3]}"} if left else set()
        )


class Upgrade:
    """Two web processes, a worker and beat. Each of them runs the old or the new release."""

    def __init__(self, folder: Path, trees: dict[str, Path], own: engines.Engines, added: list[str]) -> None:
        self.added = added
        self.ports = service.free_ports()
        variables = environment.variables_of_run(
            service.bare_environment(PORT=self.ports[0], SHOP_PORT=self.ports[1]), folder
        )
        variables |= {"DATABASE_URL": own.database_url, "REDIS_URL": own.redis_url}
        self._whole = Deployment(folder, own, variables)
        self._whole.parts = {}
        self._folder, self._variables = folder, variables
        self._trees = trees

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def manage(self, release: str, *words: str) -> str:
        tree = self._trees[release]
        command = [sys.executable, "manage.py", *words]
        told = {**self._variables, "PYTHONPATH": str(tree)}
        done = subprocess.run(command, cwd=tree, env=told, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name: str, release: str) -> None:
        """Start a process of this release. Return when the process is ready."""
        tree = self._trees[release]
        if name.startswith("web"):
            port = self.ports[int(name[-1])]
            words = f"-m gunicorn --config config/gunicorn.py --bind 127.0.0.1:{port} --workers 1 config.wsgi"
        else:
            words = f"{BEAT} {self._folder}/beat" if name == "beat" else WORKER
        variables = {**self._variables, "PYTHONPATH": str(tree)}
        self._whole.parts[name] = Part([sys.executable, *words.split()], variables, tree)
        self._whole.start(name)
        if name.startswith("web"):
            address = self.addresses[int(name[-1])]
            polling.until(lambda: _is_ready(address), within=60, what=f"{release} {name}")
        elif name.startswith("worker"):
            log = self._folder / f"{name}.log"
            polling.until(lambda: b" ready." in log.read_bytes(), within=60, what=f"{release} {name}")

    def replace(self, name: str) -> None:
        """Stop a process of the old release with SIGTERM, and start it again from the new release."""
        self._whole.stop(name)
        self.start(name, "new")

    def stop(self, name: str) -> None:
        self._whole.stop(name)

    def version(self, name: str) -> str:
        """Return the version that a process logged when it last started."""
        log = self._folder / f"{name}.log"

        def versions() -> list[str]:
            return re.findall(r"event='begins'.* version='([0-9.]+)'", log.read_text())

        polling.until(versions, within=60, what=f"the version of {name}")
        return versions()[-1]

    def end(self) -> None:
        self._whole.end()


def _is_ready(address: str) -> bool:
    try:
        return requests.get(f"{address}/readyz", timeout=5).status_code == 200
    except requests.RequestException:
        return False


@pytest.fixture
def upgrade(tmp_path: Path) -> Iterator[Upgrade]:
    """Write both releases into folders, and run all processes with the old release."""
    trees = {name: tmp_path / name for name in ("old", "new")}
    for tree in trees.values():
        tree.mkdir()
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", BEFORE], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(trees["old"])], input=packed.stdout, check=True)
    added = later.write(trees["new"])
    with engines.running(tmp_path / "run", durable=False) as own:
        one = Upgrade(tmp_path / "run", trees, own, added)
        one.manage("old", "migrate", "--verbosity", "0")
        try:
            for name in ("web0", "web1", "worker", "beat"):
                one.start(name, "old")
            yield one
        finally:
            one.end()


@contextmanager
def trading(upgrade: Upgrade, listening: Receiver) -> Iterator[list[Shop]]:
    """Run shops that order, pay, capture and refund for the duration of the block."""
    shops = []
    for number in range(SHOPS):
        made = upgrade.manage(
            "old", "create_merchant", f"Shop {number}", "--email", f"s{number}@a.example", "--json"
        )
        shops.append(Shop(upgrade.addresses, json.loads(made)))
    hook = {"url": listening.url, "event_types": ["*"]}
    listening.secrets = [
        shop.verb("merchant/v1/webhooks/subscription", hook, 201)["signing_secret"] for shop in shops
    ]
    for shop in shops:
        shop.start()
    try:
        yield shops
    finally:
        for shop in shops:
            shop.is_over.set()
            shop.join(60)


def test_no_order_fails_while_two_releases_run_side_by_side(upgrade: Upgrade, receiver: Receiver) -> None:
    with trading(upgrade, receiver) as shops:
        time.sleep(SIDE_BY_SIDE)
        assert later.NEXT not in {upgrade.version(name) for name in ("web0", "web1", "worker", "beat")}
        before = sum(shop.orders for shop in shops)
        said = upgrade.manage("new", "migrate")
        assert sum(shop.orders for shop in shops) > before, "the load stood still while it was migrated"
        assert set(upgrade.added) <= set(re.findall(r"Applying (\S+)\.\.\. OK", said))
        # At this point, only the old release runs, but on the new schema.
        time.sleep(SIDE_BY_SIDE)
        upgrade.start("worker2", "new")
        # At this point, workers of both releases run.
        time.sleep(SIDE_BY_SIDE)
        for name in ("web0", "worker", "web1", "beat"):
            upgrade.replace(name)
            assert upgrade.version(name) == later.NEXT
            time.sleep(SIDE_BY_SIDE)
        upgrade.stop("worker2")
        time.sleep(SIDE_BY_SIDE)
    assert [failure for shop in shops for failure in shop.failed] == []
    captured = {uuid for shop in shops for uuid in shop.captures}
    assert len(captured) > 50
    for shop in shops:
        assert shop.settled(within=60) == {"refunded"}
        assert {shop.status(uuid) for uuid in set(shop.captures) - set(shop.refunds)} == {"captured"}

    def told() -> set[str]:
        known = (one.envelope for one in list(receiver.arrivals))
        return {one["data"]["checkout_uuid"] for one in known if one["type"] == EventType.VOIDED}

    cancelled = {uuid for shop in shops for uuid in shop.cancels}
    polling.until(lambda: cancelled and cancelled <= told(), within=40, what="each release told")
    upgrade.manage("new", "prove_ledger")
