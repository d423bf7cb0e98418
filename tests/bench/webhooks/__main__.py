"""`make bench-webhooks`: measures the performance of webhooks with real receivers (docs/scale.md).

`python -m tests.bench.webhooks [pages] [latency] [backlog] [memory] [workers] [isolation]` runs these
sections. Without arguments, it runs all. For a trial, SCALE=0.05 makes every measurement smaller. The exit
code is 1 if a bound is missed.
"""

import importlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import django

from tests.bench.webhooks import figures, stage
from tests.bench.webhooks.figures import Figure

ENDPOINTS = 100
# `pages` must run first, because it copies the database, which the other sections fill.
SECTIONS = {
    "pages": "pages",
    "latency": "latency",
    "backlog": "throughput",
    "memory": "memory",
    "workers": "workers",
    "isolation": "isolation",
}


def main(arguments: Sequence[str]) -> int:
    """Run the named sections and print the table. Return 0 if all bounds are met, else 1 or 2."""
    if unknown := set(arguments) - set(SECTIONS):
        sys.stderr.write(f"No such section: {', '.join(sorted(unknown))}. There are {', '.join(SECTIONS)}.\n")
        return 2
    chosen = [name for name in SECTIONS if name in (arguments or SECTIONS)]
    scale = float(os.environ.get("SCALE") or 1)
    started, load = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="checkout-bench-") as folder:
        measured = _measure(chosen, Path(folder), scale)
    missed = sum(figure.is_missed for figure in measured)
    print(f"\n{figures.table(measured)}\n")
    machine = f"{os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after"
    print(f"{missed or 'No'} bounds missed, {time.monotonic() - started:.0f} s in all; {machine}.")
    return 1 if missed else 0


def _measure(chosen: Sequence[str], folder: Path, scale: float) -> list[Figure]:
    figures.progress(f"engines and receivers start in {folder}")
    measured: list[Figure] = []
    with stage.ready(folder, endpoints=ENDPOINTS, scale=scale) as here:
        django.setup()
        for name in chosen:
            section = importlib.import_module(f"tests.bench.webhooks.{SECTIONS[name]}")
            here.receiver.ask("calm")
            try:
                for figure in section.measure(here):
                    measured.append(figure)
            except RuntimeError as error:
                figures.progress(f"{name}: {error}")
                measured.append(Figure(f"{name}: not measured to the end", "", verdict=figures.MISSED))
    return measured


def _end(number: int, _: object) -> None:
    # SystemExit leaves every `with` block, so that all child processes are stopped.
    sys.exit(128 + number)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    sys.exit(main(sys.argv[1:]))
