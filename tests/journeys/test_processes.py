"""The processes of an installation: their names and metrics, and how a hanging process is ended."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
import requests
from prometheus_client.mmap_dict import MmapedDict

from tests.journeys import deployment, polling
from tests.journeys import service as services
from tests.journeys.deployment import Deployment, Part
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
TOKEN = "nobody-guesses-this-token"
NAMES = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"
STILL_SECONDS, END_SECONDS = 4.0, 20.0
# Runs Celery's command with shorter time limits, so that a worker with a hanging thread ends sooner.
HASTY = f"""
from celery.__main__ import main
from config.lib.process import liveness
liveness.stuck_threads.__defaults__, liveness.END_SECONDS = ({STILL_SECONDS},), {END_SECONDS}
main()
"""
COUNTED = 'checkout_requests_total{method="GET",route="accounts/login/",status="200"}'


class World(NamedTuple):
    """A deployment with metrics, and with two workers that have separate ports for probes."""

    whole: Deployment
    service: Service
    folder: Path
    probes: dict[str, str]

    def log(self, part: str) -> str:
        return (self.folder / f"{part}.log").read_text(errors="replace")

    def counts(self) -> dict[str, float]:
        """Map each metrics file of a web process to the number of requests for the login page that it counts."""
        found = {}
        for file in sorted((self.folder / "metrics").glob("counter_*.db")):
            read = MmapedDict.read_all_values_from_file(str(file))  # type: ignore[no-untyped-call]
            found[file.name] = sum(value for key, value, _, _ in read if "accounts/login/" in key)
        return {name: count for name, count in found.items() if count}

    def login_requests(self) -> float:
        """Return the number of requests for the login page that /metrics reports."""
        url = f"{self.service.base_url}/metrics"
        answer = requests.get(url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20)
        lines = (line for line in answer.text.splitlines() if line.startswith(COUNTED))
        return float(next(lines, "0").rpartition(" ")[2])

    def look_at_login(self) -> None:
        assert requests.get(f"{self.service.base_url}/accounts/login/", timeout=20).status_code == 200


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("processes")
    (folder / "fail").mkdir()
    probes = dict(zip(("worker", "second worker"), services.free_ports(), strict=True))
    with deployment.running(folder) as (whole, service):
        whole.parts["second worker"] = whole.parts["worker"]
        whole.start("second worker")
        variables = {
            "METRICS_TOKEN": TOKEN,
            "METRICS_DIR": str(folder / "metrics"),
            "FAIL_POINTS": str(folder / "fail"),
        }
        whole.restart_all(variables, **{name: {"PROBE_PORT": port} for name, port in probes.items()})
        yield World(whole, service, folder, probes)


def test_processes_have_names_in_postgresql(world: World) -> None:
    # PgBouncer gives a connection the name of its last user. The test therefore collects the names over time.
    seen = set[str]()

    def named() -> set[str]:
        with psycopg.connect(world.whole.engines.database_url) as connection:
            seen.update(name for (name,) in connection.execute(NAMES) if name)
        return seen

    expected = {"checkout-web", "checkout-worker", "checkout-beat"}
    polling.until(lambda: expected <= named(), within=20, what=f"{expected}")
    assert seen - expected <= {"checkout-clerk"}


def test_workers_on_one_machine_have_different_names(world: World) -> None:
    def names() -> list[str]:
        return re.findall(r"(\S+@\S+) ready\.", world.log("worker") + world.log("second worker"))

    polling.until(lambda: len(names()) == 2, within=30, what="two workers")
    assert len(set(names())) == 2
    assert "DuplicateNodename" not in world.log("worker") + world.log("second worker")


@pytest.mark.rule("environment.metrics")
class TestMetrics:
    def test_add_up_what_all_web_processes_have_counted(self, world: World) -> None:
        sent = 0
        while len(world.counts()) < 2:
            world.look_at_login()
            sent += 1
            assert sent < 2000, "one process has answered all"
        assert world.login_requests() == sum(world.counts().values()) == sent

    def test_of_an_earlier_start_are_deleted_at_the_next_start(self, world: World) -> None:
        world.look_at_login()
        folder = world.folder / "metrics"
        (former, *_) = sorted(folder.glob("counter_*.db"))
        world.whole.kill("web")
        stale = {folder / former.name, folder / "counter_99999999.db"}
        shutil.copy(former, folder / "counter_99999999.db")
        world.whole.make_whole()
        assert not any(file.exists() for file in stale)
        assert world.login_requests() == 0
        world.look_at_login()
        polling.until(lambda: world.login_requests() == 1, within=10, what="one request")


@pytest.mark.rule("environment.liveness")
def test_processes_end_when_a_thread_hangs_and_lose_no_work(world: World) -> None:
    """A worker with a hanging thread ends. After the restart, the refund is made.

    Redis is stopped, so a thread of the worker runs the pump. A failpoint makes this thread sleep before it
    calls the bank.
    """
    usual = world.whole.parts["worker"]
    words = list(usual.command)
    place = words.index("-m")
    words[place : place + 2] = ["-c", HASTY]
    world.whole.kill("second worker")
    del world.whole.parts["second worker"]
    world.whole.kill("worker")
    world.whole.parts["worker"] = Part(words, usual.variables)
    world.whole.make_whole()
    merchant = world.service.new_merchant()
    uuid = merchant.captured()
    world.whole.stop_redis()
    (world.folder / "fail" / "before_call.refund").write_text("sleep 300")
    merchant.refund(uuid)

    def named() -> str:
        answer = requests.get(f"http://127.0.0.1:{world.probes['worker']}/livez", timeout=5)
        return answer.text if answer.status_code == 503 else ""

    still = polling.until(named, within=30, what="a thread that stands still")
    assert re.fullmatch(r"ticker \d+ of checkout\.tasks\.finish_operations stands still\n", still)
    assert world.whole.ended("worker", within=60) == os.EX_SOFTWARE
    assert "stands still and ends" in world.log("worker")
    world.whole.parts["worker"] = usual
    world.whole.make_whole()
    merchant.awaited(uuid, "refunded", within=30)
