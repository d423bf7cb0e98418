import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.config.local import living
from tests.journeys import polling, service
from tests.journeys.merchant import Credentials, Merchant
from tests.journeys.service import ROOT
from tests.journeys.watched.person import Person

pytestmark = pytest.mark.journey

KEYS = {
    *("base_url", "client_id", "client_secret", "portal_url", "portal_email", "portal_password"),
    *("admin_url", "admin_username", "admin_password", "shop_url"),
    *("shop_portal_email", "shop_portal_password"),
}
MADE = {"merchant_uuid", "client_id", "client_secret", "portal_email", "portal_password"}
# The cases of the checklist, except those that need a new secret, or a wait of two minutes before the capture.
CASES = ("twice", "retry", "slow", "lost", "refused", "pledged")
NOT_COPIED = shutil.ignore_patterns(".*", "tests", "__pycache__")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project that has its own `.local`, so that runs of the original do not affect it."""
    copy = tmp_path_factory.mktemp("make") / "project"
    shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
    (copy / ".venv").symlink_to(Path(sys.prefix))
    return copy


class Run:
    """A `make run` process in a separate session, as in a terminal."""

    def __init__(self, tree: Path, make: "subprocess.Popen[bytes]") -> None:
        self.tree = tree
        self.make = make
        self.sandbox = tree / ".local" / "sandbox.json"

    def await_announcement(self) -> dict[str, str]:
        """Wait for sandbox.json, and return its content."""

        def announced() -> bool:
            assert self.make.poll() is None, self.log()
            return self.sandbox.exists()

        polling.until(announced, within=service.START_SECONDS, what="sandbox.json")
        known: dict[str, str] = json.loads(self.sandbox.read_text())
        return known

    def log(self) -> str:
        return (self.tree.parent / "run.log").read_text(errors="replace")

    def ctrl_c(self) -> None:
        """Send SIGINT to the whole foreground process group, as a terminal does for Ctrl-C."""
        os.killpg(self.make.pid, signal.SIGINT)

    def kill_the_program(self) -> None:
        """Send SIGKILL to the program that make has started, but not to make itself."""
        make = self.make.pid
        (child,) = map(int, Path(f"/proc/{make}/task/{make}/children").read_text().split())
        os.kill(child, signal.SIGKILL)

    def is_gone(self) -> bool:
        return self.make.poll() is not None and living.processes_in(self.tree) == []


@contextmanager
def make_run(tree: Path) -> Iterator[Run]:
    """Start `make run` in the tree. At the end of the block, stop the processes that are still running."""
    # A run that was killed does not delete this file.
    (tree / ".local" / "sandbox.json").unlink(missing_ok=True)
    port, shop_port = service.free_ports()
    variables = service.bare_environment(PORT=port, SHOP_PORT=shop_port)
    del variables["PYTHONPATH"]
    with open(tree.parent / "run.log", "wb") as log:
        process = subprocess.Popen(
            ["make", "--old-file=.venv/.installed", "run"],
            env=variables,
            cwd=tree,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    run = Run(tree, process)
    try:
        yield run
    finally:
        if not run.is_gone():
            os.killpg(process.pid, signal.SIGTERM)
            polling.until(run.is_gone, within=2 * service.END_SECONDS, what="the end of make run")
        process.wait()


def manage(tree: Path, *arguments: str) -> str:
    """Run manage.py without the environment variables of the run, as in a different terminal."""
    bare = service.bare_environment()
    del bare["PYTHONPATH"]
    command = [str(tree / ".venv" / "bin" / "python"), "manage.py", *arguments]
    return subprocess.run(command, env=bare, cwd=tree, check=True, capture_output=True, text=True).stdout


def merchant_of(known: dict[str, str]) -> Merchant:
    return Merchant(known["base_url"], Credentials(known["client_id"], known["client_secret"]))


@contextmanager
def ended(run: Run) -> Iterator[None]:
    """After the block, fail unless the processes of the run end and sandbox.json is deleted."""
    yield
    polling.until(run.is_gone, within=service.END_SECONDS, what="the end of the run")
    assert not run.sandbox.exists()


@pytest.mark.rule("environment.run")
class TestMakeRun:
    def test_announces_itself_and_ends_all_processes(self, tree: Path) -> None:
        with make_run(tree) as run:
            known = run.await_announcement()
            assert set(known) == KEYS
            assert run.sandbox.stat().st_mode & 0o777 == 0o600
            assert [key for key in KEYS if known[key] not in run.log()] == []
            merchant_of(known).captured()
            with ended(run):
                run.ctrl_c()

    @pytest.mark.long
    def test_keeps_the_data_from_run_to_run(self, tree: Path) -> None:
        with make_run(tree) as run:
            known = run.await_announcement()
            checkout_uuid = merchant_of(known).captured()
            with ended(run):
                run.ctrl_c()
        with make_run(tree) as run:
            again = run.await_announcement()
            assert again["client_id"] == known["client_id"]
            assert merchant_of(again).read(checkout_uuid)["status"] == "captured"
            made = json.loads(manage(tree, "create_merchant", "Beside", "--email=b@beside.example", "--json"))
            assert set(made) == MADE
            assert merchant_of({**again, **made}).create()
            with ended(run):
                run.make.kill()

    @pytest.mark.long
    @pytest.mark.rule("trial.order")
    def test_the_demo_shop_passes_the_cases_of_its_checklist(self, tree: Path) -> None:
        with make_run(tree) as run:
            known = run.await_announcement()
            owner = Person(known["portal_url"].removesuffix("/portal"))
            owner.log_in(known["shop_portal_email"], known["shop_portal_password"])
            for name in CASES:
                owner.open("/portal/checklist")
                owner.send("/checklist/run", case=name)

            def passed() -> bool:
                words = owner.open("/portal/checklist")
                return all(f'id="case-{name}" class="is-done"' in words for name in CASES)

            polling.until(passed, within=150, what=f"the end of {CASES}")
            with ended(run):
                run.ctrl_c()

    @pytest.mark.long
    def test_ends_all_processes_on_sigterm(self, tree: Path) -> None:
        with make_run(tree) as run:
            run.await_announcement()
            with ended(run):
                run.make.terminate()

    @pytest.mark.long
    def test_leaves_no_process_even_if_it_is_killed(self, tree: Path) -> None:
        for _ in range(2):
            with make_run(tree) as run:
                run.await_announcement()
                run.kill_the_program()
                polling.until(
                    run.is_gone, within=service.END_SECONDS, what="the end after SIGKILL of the program"
                )
