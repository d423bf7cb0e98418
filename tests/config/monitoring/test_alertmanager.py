"""A real Alertmanager with config/monitoring/alertmanager.yml."""

import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from config.local import children
from tests.config.monitoring import rules
from tests.journeys import polling, service

pytestmark = [pytest.mark.long, pytest.mark.rule("environment.alerts")]
CONFIGURATION = rules.HERE / "alertmanager.yml"
SEVERITIES = {rule["alert"]: rule["labels"]["severity"] for rule in rules.RULES}


class Alertmanager:
    """A running Alertmanager."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/api/v2/alerts"
        self._http = requests.Session()
        self._http.trust_env = False

    def send(self, *names: str, is_over: bool = False) -> None:
        """Report that these alerts fire, or that they have ended, as Prometheus does."""
        now = datetime.now(UTC)
        times = {"startsAt": (now - timedelta(minutes=5)).isoformat()} | (
            {"endsAt": now.isoformat()} if is_over else {}
        )
        alerts: Any = [
            {"labels": {"alertname": name, "severity": SEVERITIES[name], "docs": "here"}, **times}
            for name in names
        ]
        self._http.post(self._url, json=alerts, timeout=5).raise_for_status()

    def suppressed(self) -> set[str]:
        """Return the names of the alerts that Alertmanager suppresses, so that no one is notified."""
        found: list[dict[str, Any]] = self._http.get(self._url, timeout=5).json()
        return {alert["labels"]["alertname"] for alert in found if alert["status"]["state"] == "suppressed"}

    def is_up(self) -> bool:
        try:
            return self._http.get(self._url, timeout=2).status_code == 200
        except requests.RequestException:
            return False


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    port, _ = service.free_ports()
    command = [
        "prometheus-alertmanager",
        f"--config.file={CONFIGURATION}",
        f"--storage.path={tmp_path}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with open(tmp_path / "log", "wb") as log:
        tied = children.tie_to_parent(command, by=signal.SIGKILL)
        process = subprocess.Popen(tied, stdout=log, stderr=subprocess.STDOUT)
    try:
        running = Alertmanager(f"http://127.0.0.1:{port}")
        polling.until(running.is_up, within=30, what="Alertmanager")
        yield running
    finally:
        process.terminate()
        process.wait(20)


def test_only_the_cause_pages_if_the_database_is_away(alertmanager: Alertmanager) -> None:
    consequences = {"PoolFull", "RequestsFail"}
    alertmanager.send("DatabaseAway", "WorkerDown", *consequences)
    polling.until(
        lambda: alertmanager.suppressed() == consequences, within=20, what="the suppressed consequences"
    )
    alertmanager.send("DatabaseAway", is_over=True)
    polling.until(lambda: not alertmanager.suppressed(), within=20, what="all alerts")


@pytest.mark.parametrize(("alert", "receiver"), [("WorkerDown", "pager"), ("BackupLate", "tickets")])
def test_alerts_reach_their_receiver(alert: str, receiver: str) -> None:
    command = ["amtool", "config", "routes", "test", f"--config.file={CONFIGURATION}", f"alertname={alert}"]
    done = subprocess.run(
        [*command, f"severity={SEVERITIES[alert]}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == receiver
