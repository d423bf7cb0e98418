"""Starts everything that a sale needs: the service behind its proxy, a bank over HTTP, and a shop."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from config.deploy import make_env
from config.local import children, engines, environment
from tests import template
from tests.bench.sale.buyers import Sale
from tests.chaos.world import FREE_OF_LIMITS, World
from tests.config.deploy import proxy
from tests.journeys import polling, service
from tests.journeys.deployment import Part
from tests.journeys.service import Service

BANK_PACE = "0.8 3 0.01"  # p50 and p99 in seconds, and the proportion of answers that are lost
BANK_THREADS, BANK_CONNECTIONS = "150", "150"
_LATE = """
SELECT count(*)::int FROM checkout_checkout c JOIN payments_operation o ON o.payment_id = c.payment_id
WHERE o.kind = 'capture' AND o.created_at >= c.capture_before
"""
_TWICE = """
SELECT count(*)::int FROM (
    SELECT charge_id FROM bank_call WHERE kind = 'capture' AND verdict = 'succeeded' GROUP BY 1 HAVING count(*) > 1
) twice
"""


@dataclass(frozen=True)
class Stage:
    """The running service, and the URL of the shop, which returns its record of each order."""

    world: World
    service: Service
    certificate: str
    token: str
    shop_url: str

    def sale(self, first: int = 0) -> Sale:
        """Return the data for the buyers in the sale. `first` is the number of the first buyer."""
        return Sale(self.service.base_url, self.certificate, self.token, first)

    def captured_late(self) -> int:
        """Return the number of captures that began after their hold had lapsed."""
        return int(self.world.rows(_LATE)[0][0])

    def captured_twice(self) -> int:
        """Return the number of cards that the bank has charged more than once."""
        return int(self.world.rows(_TWICE, of_bank=True)[0][0])


@contextlib.contextmanager
def ready(folder: Path) -> Iterator[Stage]:
    """Run the service, the bank and the shop for the duration of the block."""
    template.copy_to(folder)
    with (folder / template.CLUSTER / "postgresql.conf").open("a") as settings:
        # With this setting, `holding.lags` can read when the voids were committed.
        settings.write("track_commit_timestamp = on\n")
    template.copy_to(folder / "bank")
    make_env.write(folder, "localhost")
    (http, https), (shop_port, _) = service.free_ports(), service.free_ports()
    certificate = str(folder / ".tls" / "public.pem")
    variables = _variables(folder, f"https://localhost:{https}", certificate)
    with (
        engines.running(folder, durable=True) as own,
        engines.running(folder / "bank", durable=False, redis_url=own.redis_url) as books,
        contextlib.ExitStack() as stack,
    ):
        variables |= {"DATABASE_URL": own.database_url, "REDIS_URL": own.redis_url}
        world = World(folder, own, variables, books)
        bank = world.parts["bank"]
        slow = {"BANK_PACE": BANK_PACE, "BANK_THREADS": BANK_THREADS, "DATABASE_POOL": BANK_CONNECTIONS}
        world.parts["bank"] = Part(bank.command, {**bank.variables, **slow})
        world.fill()
        stack.callback(world.end)
        world.parts.pop("shop", None)
        nginx = proxy.command(folder, folder / ".tls", web=variables["PORT"], http=http, https=https)
        stack.enter_context(_tied(nginx))
        polling.until((folder / "nginx.pid").exists, within=10, what="nginx")
        os.environ["REQUESTS_CA_BUNDLE"] = certificate  # this process also calls the service
        stack.callback(os.environ.pop, "REQUESTS_CA_BUNDLE")
        world.make_whole()
        helper = stack.enter_context(service.clerk(variables))
        running = Service(variables["BASE_URL"], "", helper, certificate)
        yield _with_shop(world, running, folder, shop_port, stack)


def _variables(folder: Path, base_url: str, certificate: str) -> dict[str, str]:
    (port, other), (bank_port, _) = service.free_ports(), service.free_ports()
    points = folder / "points"
    points.mkdir()
    more = {"BANK_PORT": bank_port, "BANK_URL": f"http://127.0.0.1:{bank_port}", "FAIL_POINTS": str(points)}
    more |= {"DJANGO_SETTINGS_MODULE": "tests.bank.settings", "SSL_CERT_FILE": certificate}
    given = service.bare_environment(PORT=port, SHOP_PORT=other, **more, **FREE_OF_LIMITS)
    address = {"BASE_URL": base_url, "TRUSTED_PROXY_COUNT": "1"}
    return environment.variables_of_run(given, folder) | address


def _with_shop(world: World, running: Service, folder: Path, port: str, stack: contextlib.ExitStack) -> Stage:
    merchant = running.new_merchant()
    token = merchant.headers["Authorization"].removeprefix("Bearer ")
    url = f"https://localhost:{port}"
    given = {
        "base_url": running.base_url,
        "token": token,
        "secret": merchant.subscribe(f"{url}/hooks"),
        "port": port,
        "certificate": running.ca,
        "key": str(folder / ".tls" / "private.pem"),
    }
    (folder / "shop.json").write_text(json.dumps(given))
    command = (sys.executable, "-m", "tests.bench.sale.shop", str(folder / "shop.json"))
    with open(folder / "shop.log", "wb") as log:
        stack.enter_context(_tied(command, log=log, variables=world.variables))
    return Stage(world, running, running.ca, token, url)


@contextlib.contextmanager
def _tied(
    command: Sequence[str], *, log: IO[bytes] | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[None]:
    process = subprocess.Popen(
        children.tie_to_parent(list(command), by=signal.SIGTERM),
        env=dict(variables) if variables else None,
        stdout=log or subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)
