"""Runs the programs that merchants download. The programs are not changed, and each runs in its own process.

Programs in TypeScript and Go are first checked and compiled.
"""

import functools
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from config.local import children
from tests.waiting import wait_for
from tests.webhooks.foreign import go_builds

ROOT = Path(__file__).resolve().parents[3]
TYPESCRIPT = Path(__file__).with_name("node_modules")
STRICT = (
    *("--strict", "--erasableSyntaxOnly", "--noUncheckedIndexedAccess", "--skipLibCheck", "--types", "node"),
    *("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"),
)
# With the option -n, PHP ignores the machine's php.ini. With --disable-gems, Ruby has only its standard
# library.
COMMANDS = {
    ".py": ["python3", "{file}"],
    ".mjs": ["node", "{file}"],
    ".ts": ["node", "{file}"],
    ".php": ["php", "-n", "{file}"],
    ".go": ["{file}"],
    ".rb": ["ruby", "--disable-gems", "-w", "{file}"],
    ".sh": ["bash", "{file}"],
}
SERVERS = COMMANDS | {".php": ["php", "-n", "-S", "127.0.0.1:{port}", "{file}"]}
# PHP's web server has no background tasks. Therefore a second PHP process looks for checkouts without a
# delivery.
BESIDE = {".php": COMMANDS[".php"]}


class Answer(NamedTuple):
    """A receiver's answer. If the receiver closed the connection without an answer, the status is 0."""

    status: int
    words: str


class Running(NamedTuple):
    """A running receiver, and the folder in which it writes its files."""

    folder: Path
    port: str

    def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Deliver a webhook and return the answer. Fail if the answer does not arrive within fifteen seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=15)
        try:
            connection.request(
                "POST", "/webhooks", body, {name: text.encode() for name, text in headers.items()}
            )
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode())
        except ConnectionError:
            return Answer(0, "")
        finally:
            connection.close()

    def paid(self) -> list[str]:
        """Return the checkouts that the receiver has marked as paid."""
        return sorted(path.name for path in (self.folder / "paid").iterdir())

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def listens(self) -> bool:
        try:
            http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=1).connect()
        except OSError:
            return False
        return True


def variables(base_url: str, client_id: str, client_secret: str) -> dict[str, str]:
    """Return the environment variables that the documentation page requires."""
    return {
        "CHECKOUT_BASE_URL": base_url,
        "CHECKOUT_CLIENT_ID": client_id,
        "CHECKOUT_CLIENT_SECRET": client_secret,
    }


def run(program: Path, folder: Path, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a program in a folder, with these environment variables, until it ends."""
    command = [word.format(file=_placed(program, folder)) for word in COMMANDS[program.suffix]]
    return subprocess.run(
        command,
        cwd=folder,
        env={**_bare(), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def start(
    receiver: Path, folder: Path, environment: Mapping[str, str], stack: ExitStack, *, port: str = ""
) -> Running:
    """Start a receiver in a folder, with these environment variables. Stop it when the stack closes.

    If `port` is not given, the receiver listens on a free port.
    """
    started = Running(folder, port or held_port(stack))
    named = {"file": _placed(receiver, folder), "port": started.port}
    output = stack.enter_context((folder / "output").open("w"))
    for command in (SERVERS[receiver.suffix], BESIDE.get(receiver.suffix, [])):
        process = subprocess.Popen(
            children.tie_to_parent([word.format(**named) for word in command or ["true"]], by=signal.SIGTERM),
            cwd=folder,
            env={**_bare(), **environment, "PORT": started.port},
            stdout=output,
            stderr=output,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
    wait_for(started.listens, within=15)
    return started


def _bare() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


def _placed(program: Path, folder: Path) -> str:
    if program.suffix == ".go":
        return str(go_builds.build(program))
    if program.suffix != ".ts":
        shutil.copy(program, folder)
        return program.name
    (folder / f"{program.stem}.mjs").write_text(_compiled(program))
    return f"{program.stem}.mjs"


@functools.cache
def _compiled(program: Path) -> str:
    """Compile a TypeScript program, and return the JavaScript. If that fails, show the compiler's errors."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = str(TYPESCRIPT / "typescript" / "bin" / "tsc")
        where = ("--typeRoots", str(TYPESCRIPT / "@types"), "--outDir", folder)
        done = subprocess.run(
            ["node", compiler, *STRICT, *where, str(program.resolve())],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return (Path(folder) / f"{program.stem}.js").read_text()


def held_port(stack: ExitStack) -> str:
    """Return a port that stays reserved until the stack closes.

    A program can listen on this port if it sets SO_REUSEADDR, as servers do by default.
    """
    holder = stack.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return str(holder.getsockname()[1])


def stopped_clock(now: int | None) -> dict[str, str]:
    """Return environment variables that make the clock of a process always show `now`.

    The dict is empty if `now` is None. The variables load a library from Debian's package faketime. The
    package's command `faketime` is not used, because it runs the program as a child process, which continues
    when the command is stopped. The library has no effect on Go programs, so stopped_clock.go reads FAKETIME.
    """
    if now is None:
        return {}
    return {
        "LD_PRELOAD": "/usr/$LIB/faketime/libfaketime.so.1",
        "FAKETIME": f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S}",
        "TZ": "UTC",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # so that a wait takes its normal time
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }
