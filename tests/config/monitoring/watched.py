"""The whole service with constant traffic, watched by a real Prometheus."""

import contextlib
import json
import signal
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import requests
import yaml

from config.local import children
from tests.chaos.webhooks.fleet import WRONG_CLOCK
from tests.config.monitoring import rules
from tests.journeys import deployment, polling, receiver, service
from tests.journeys.deployment import Deployment, Part
from tests.journeys.receiver import Receiver
from tests.journeys.service import Service
from tests.webhooks.receivers import receiving

TOKEN = "nobody-guesses-this-token"
# Sizes of the pool and of the bulkheads, so small that a few callers can use them up.
SMALL = {"DATABASE_POOL": "4", "PROVIDER_SLOTS": "2", "CAPTURE_SLOTS": "2"}
SET_FAULT = """
from payments.providers.sandbox import fault_injection
for verb in {verbs}:
    fault_injection.set_fault(verb=verb, mode="{mode}", times={times})
"""
OF_HOLD = """
SELECT d.status FROM webhooks_delivery d JOIN webhooks_event e ON e.id = d.event_id
WHERE e.checkout_uuid = %s AND e.type = 'checkout.authorized'
"""


class Prometheus:
    """A running Prometheus of a test."""

    def __init__(self, folder: Path, port: str) -> None:
        self.folder, self._url = folder, f"http://127.0.0.1:{port}"
        self._http = requests.Session()
        self._http.trust_env = False

    def _api(self, path: str, **query: str) -> Any:
        return self._http.get(f"{self._url}/api/v1/{path}", params=query, timeout=10).json()["data"]

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire now."""
        return {
            one["labels"]["alertname"] for one in self._api("alerts")["alerts"] if one["state"] == "firing"
        }

    def runbooks(self) -> set[str]:
        """Return the runbook links of the alerts that fire now or will soon."""
        return {one["annotations"]["runbook"] for one in self._api("alerts")["alerts"]}

    def ever_fired(self) -> set[str]:
        """Return the names of the alerts that have fired since the start."""
        found = self._api("query", query='max_over_time(ALERTS{alertstate="firing"}[1d])')["result"]
        return {one["metric"]["alertname"] for one in found}

    def value(self, query: str) -> float | None:
        """Return the first value of a query, or None if the query has no result."""
        found = self._api("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else None

    def is_up(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            return self._http.get(f"{self._url}/-/ready", timeout=2).status_code == 200
        return False


@contextlib.contextmanager
def prometheus(folder: Path, ports: dict[str, str], factor: float, every: str) -> Iterator[Prometheus]:
    """Run Prometheus with the files of config/monitoring, with a test's ports, and all times multiplied by `factor`."""
    folder.mkdir()
    told = yaml.safe_load((rules.HERE / "prometheus.yml").read_text())
    told["global"] |= {"scrape_interval": every, "evaluation_interval": every, "scrape_timeout": every}
    del told["alerting"]  # no Alertmanager is running
    for job in told["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{ports[job['job_name']]}"]}]
    (folder / "prometheus.yml").write_text(json.dumps(told))
    (folder / "alerts.yml").write_text(rules.written(factor))
    (folder / "token").write_text(TOKEN)
    port, _ = service.free_ports()
    command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with open(folder / "prometheus.log", "wb") as log:
        process = subprocess.Popen(
            children.tie_to_parent(command, by=signal.SIGKILL),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        one = Prometheus(folder, port)
        polling.until(one.is_up, within=30, what="Prometheus")
        yield one
    finally:
        process.terminate()
        process.wait(20)


class PublicHost:
    """A server with TLS that replaces the proxy. It writes its certificate to a file that beat trusts."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.trusted = folder, folder / "pair.pem"
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.set_certificate(days=60)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
        self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_port}/pay"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def set_certificate(self, *, days: int) -> None:
        """Serve a new certificate, which expires in so many days."""
        receiving.certificate(self._folder, host="localhost", to_days=days)
        self._context.load_cert_chain(self.trusted)

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class World:
    """The service, methods that cause faults in it, and a merchant with a constant stream of orders."""

    def __init__(self, whole: Deployment, helper: Service, shop: Receiver, host: PublicHost) -> None:
        self.whole, self.service, self.shop, self.host = whole, helper, shop, host
        self.merchant = helper.new_merchant("Acme Tickets")
        shop.secrets = [self.merchant.subscribe(shop.url)]
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._trade, daemon=True)]
        self._threads[0].start()

    def _trade(self) -> None:
        """Create, pay, capture and refund orders in a loop, and continue after errors."""
        while not self._is_over.wait(0.2):
            with contextlib.suppress(AssertionError, requests.RequestException, KeyError):
                self.merchant.refund(self.merchant.captured())

    def call_in_parallel(self, callers: int, path: str, body: Any = None) -> None:
        """Start this many callers. Each requests a path of the API in a loop."""

        def ask() -> None:
            with requests.Session() as http:
                http.trust_env = False
                while not self._is_crowd_over.wait(0.05):
                    with contextlib.suppress(requests.RequestException):
                        url = f"{self.merchant.base_url}/api/{path}"
                        method = "GET" if body is None else "POST"
                        http.request(method, url, json=body, headers=self.merchant.headers, timeout=15)

        self._is_crowd_over = threading.Event()
        for _ in range(callers):
            threading.Thread(target=ask, daemon=True).start()

    def send_callers_away(self) -> None:
        self._is_crowd_over.set()

    def set_fault(self, mode: str, *verbs: str, times: int = 100_000) -> None:
        """From now on, make the sandbox bank's calls fail in this mode. `times=0` ends the fault."""
        wanted = verbs or ("authorize", "capture", "void", "refund", "look_up")
        self.service.command("shell", "--command", SET_FAULT.format(verbs=wanted, mode=mode, times=times))

    def is_parked(self, checkout_uuid: str) -> bool:
        """Return whether the webhook about a hold is parked."""
        (status,) = self.whole.one_row(OF_HOLD, checkout_uuid)
        return bool(status == "parked")

    def hold(self, table: str) -> None:
        """Lock a table until `let_go` is called. Until then, no connection can read the table."""
        self._holder = psycopg.connect(self.whole.engines.database_url)
        self._holder.execute("SET lock_timeout = 0")
        self._holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")

    def let_go(self) -> None:
        self._holder.close()

    def open_database(self, is_open: bool) -> None:
        """Let the database accept connections, or make it refuse new ones and end the existing ones."""
        there = self.whole.engines.database_url.replace("@/checkout", "@/postgres")
        with psycopg.connect(there, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE checkout ALLOW_CONNECTIONS {is_open}")
            if not is_open:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'checkout'"
                )

    def set_read_only(self, is_read_only: bool) -> None:
        """Let the database refuse every change, or accept changes again."""
        self._set_in_postgres("default_transaction_read_only", str(is_read_only))

    def archive_with(self, command: str) -> None:
        """Let PostgreSQL archive its log with this command, and start a new log segment."""
        self._set_in_postgres("archive_command", command)
        self.whole.one_row("SELECT pg_switch_wal()")

    def _set_in_postgres(self, name: str, value: str) -> None:
        with psycopg.connect(self.whole.engines.database_url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def set_clock(self, part: str, ahead: str) -> None:
        """Restart a part of the service with a clock that is ahead by a time such as "30s"."""
        usual = self.whole.parts[part]
        self.whole.kill(part)
        self.whole.parts[part] = Part(
            ("faketime", "-f", f"+{ahead}", *usual.command), {**usual.variables, **WRONG_CLOCK}
        )
        self.whole.start(part)
        self.whole.parts[part] = usual  # used at the next start

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(30)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[World, dict[str, str]]]:
    """Run the service with metrics; yield it, and the port of each job in the Prometheus configuration."""
    archiving = {"archive_mode": "on", "archive_command": "true"}
    with deployment.running(folder, archiving) as (whole, helper), receiver.listening() as shop:
        host = PublicHost(folder)
        probes = service.free_ports()
        ports = dict(zip(("worker", "beat"), probes, strict=True))
        measured = {"METRICS_TOKEN": TOKEN, "METRICS_DIR": str(folder / "metrics")}
        (folder / "fail").mkdir()
        of_part = {name: {"PROBE_PORT": port} for name, port in ports.items()}
        of_part["beat"] |= {"CHECKOUT_PAGE_URL": host.url, "SSL_CERT_FILE": str(host.trusted)}
        whole.restart_all({**measured, "FAIL_POINTS": str(folder / "fail")}, web=SMALL, **of_part)
        world = World(whole, helper, shop, host)
        try:
            yield (
                world,
                {"checkout-web": whole.variables["PORT"]} | {f"checkout-{k}": v for k, v in ports.items()},
            )
        finally:
            world.end()
            host.end()
