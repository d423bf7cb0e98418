"""Runs the processes of a bench: helpers ("clerks") with a JSON protocol, and the worker that is measured."""

import bisect
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from config.local import children

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "tests.bench.webhooks"
START_SECONDS = 60
STOP_SECONDS = 15
SAMPLE_SECONDS = 0.02
TICKS = os.sysconf("SC_CLK_TCK")


class Clerk:
    """A child process that runs a module of this package. Requests and responses are lines of JSON."""

    def __init__(self, module: str, variables: Mapping[str, str], log: Path, *arguments: str) -> None:
        self._log = log
        with log.open("wb") as written:
            self._process = subprocess.Popen(
                children.tie_to_parent(
                    [sys.executable, "-m", f"{PACKAGE}.{module}", *arguments], by=signal.SIGKILL
                ),
                env=dict(variables),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                text=True,
                start_new_session=True,
            )

    def ask(self, verb: str, **asked: Any) -> Any:
        """Call a function in the child process by its name, and return its result."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([verb, asked]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._log.stem} has ended by itself; its last words:\n{_end_of(self._log)}")
        return json.loads(line)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def serve(verbs: Mapping[str, Callable[..., Any]]) -> None:
    """Answer the requests of `Clerk.ask` until the input ends."""
    for line in sys.stdin:
        verb, asked = json.loads(line)
        print(json.dumps(verbs[verb](**asked)), flush=True)


class Worker:
    """A worker process as in `make run`. Its log is in a file."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as written:
            self._process = subprocess.Popen(
                children.tie_to_parent(command, by=signal.SIGKILL),
                env=dict(variables),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.until(lambda: b" ready." in log.read_bytes(), within=START_SECONDS, what="the worker's start")

    def until(self, is_so: Callable[[], bool], *, within: float, what: str) -> None:
        """Wait until the condition is true.

        If this takes too long or the worker has ended, raise RuntimeError with the end of the log.
        """
        deadline = time.monotonic() + within
        while not is_so():
            if self._process.poll() is not None or time.monotonic() > deadline:
                words = f"the worker's last words:\n{_end_of(self._log)}"
                raise RuntimeError(f"{what}: not within {within:.0f} s; {words}")
            time.sleep(0.05)

    def cpu_seconds(self) -> float:
        """Return the user and system CPU seconds that all threads of the worker have used so far."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_megabytes(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        kilobytes = next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]
        return int(kilobytes) / 1024

    def stop(self) -> None:
        """Stop the worker in an orderly way, as a deployment would."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class CpuTrace:
    """Samples a worker's CPU time during the `with` block, so that it can be read for any period."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._moments: list[int] = []
        self._seconds: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "CpuTrace":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def between(self, start: int, end: int) -> float:
        """Return the CPU seconds between two moments. The moments are in ns since the epoch."""
        return self._at(end) - self._at(start)

    def _sample(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            self._moments.append(time.time_ns())
            self._seconds.append(self._worker.cpu_seconds())

    def _at(self, moment: int) -> float:
        return self._seconds[min(bisect.bisect(self._moments, moment), len(self._seconds) - 1)]


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]
