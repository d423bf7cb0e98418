"""A running service as its users and operators see it: its address, merchants, and manage.py commands."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from config.local import children, environment, run
from tests import pooler, template
from tests.config.local import living
from tests.journeys import polling
from tests.journeys.merchant import Credentials, Merchant

ROOT = Path(__file__).resolve().parents[2]
RUN = "import sys, pathlib; from config.local import run; sys.exit(run.main(pathlib.Path(sys.argv[1])))"
START_SECONDS = 60
END_SECONDS = 10  # rule environment.run


@dataclass(frozen=True)
class Service:
    """A running service.

    `shop_url` is empty if there is no demo shop. `ca` is the file with the CA that issued the service's
    certificate. If the service does not use https, `ca` is empty.
    """

    base_url: str
    shop_url: str
    clerk: "subprocess.Popen[str]"
    ca: str = ""

    def command(self, *arguments: str) -> str:
        """Run a command of manage.py in the clerk process, and return its output. Fail unless the command succeeds."""
        assert self.clerk.stdin is not None and self.clerk.stdout is not None
        self.clerk.stdin.write(json.dumps(arguments) + "\n")
        self.clerk.stdin.flush()
        result = json.loads(self.clerk.stdout.readline())
        assert result["exit_code"] == 0, result["printed"]
        return str(result["printed"])

    def new_merchant(self, name: str = "Acme Tickets") -> Merchant:
        """Create a merchant with `manage.py create_merchant`, and return the merchant's backend."""
        email = f"owner-{uuid4().hex[:8]}@acme.example"
        made = json.loads(self.command("create_merchant", name, "--email", email, "--json"))
        merchant = Merchant(self.base_url, Credentials(made["client_id"], made["client_secret"]), self.ca)
        merchant.owner = (made["portal_email"], made["portal_password"])
        return merchant

    def prove_ledger(self) -> None:
        """Fail unless the ledger agrees with the statuses. The error names the checkouts for which they disagree."""
        self.command("prove_ledger")


def bare_environment(**more: str) -> dict[str, str]:
    """Return the basic environment variables of the shell, without the databases and keys of this test run."""
    kept = {name: text for name, text in os.environ.items() if name in {"PATH", "HOME", "TMPDIR", "LANG"}}
    return kept | {"PYTHONPATH": str(ROOT)} | more


def free_ports() -> tuple[str, str]:
    """Return two ports that were free a moment ago."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1]), str(other.getsockname()[1])


@contextlib.contextmanager
def clerk(
    variables: Mapping[str, str], *, module: str = "tests.journeys.clerk"
) -> Iterator["subprocess.Popen[str]"]:
    """Run a process for manage.py commands, called the clerk, for the duration of the block.

    The process gets these environment variables.
    """
    command = children.tie_to_parent([sys.executable, "-m", module], by=signal.SIGTERM)
    with subprocess.Popen(
        command, env=dict(variables), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Service]:
    """Run the program of `make run` for the duration of the block, with its files in the folder.

    Afterwards, fail if one of its processes is still running, or if its sandbox file still exists.
    """
    with pooler.variables_of_pooled_run() as more:
        with _running(folder, more) as started:
            yield started
    assert living.processes_in(folder) == []
    assert not (folder / run.SANDBOX).exists()


@contextlib.contextmanager
def _running(folder: Path, more: dict[str, str]) -> Iterator[Service]:
    template.copy_to(folder)
    port, shop_port = free_ports()
    with open(folder / "run.log", "wb") as log:
        process = subprocess.Popen(
            children.tie_to_parent([sys.executable, "-c", RUN, str(folder)], by=signal.SIGTERM),
            env=bare_environment(PORT=port, SHOP_PORT=shop_port, **more),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        sandbox = _sandbox_of(process, folder)
        variables = bare_environment() | environment.read_private(folder / environment.RUNNING)
        with clerk(variables) as helper:
            yield Service(sandbox["base_url"], sandbox["shop_url"], helper)
    finally:
        process.terminate()
        assert process.wait(END_SECONDS) == 0


def _sandbox_of(process: "subprocess.Popen[bytes]", folder: Path) -> dict[str, str]:
    """Wait until the program has written its sandbox file, and return the content of the file."""

    def announced() -> bool:
        assert process.poll() is None, (folder / "run.log").read_text(errors="replace")[-3000:]
        return (folder / run.SANDBOX).exists()

    polling.until(announced, within=START_SECONDS, what="make run")
    return environment.read_private(folder / run.SANDBOX)
