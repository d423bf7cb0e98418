"""Measures how much CPU time each part of a sale uses, with the figures in /proc."""

import os
from collections import defaultdict
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# Maps a text in the command line of a process to the part to which the process belongs. The first text that
# matches decides.
PARTS = {
    "tests.bank.process": "bank",
    "tests.bench.sale.shop": "shop",
    "config.wsgi": "web",
    " worker ": "workers",
    " beat ": "beat",
    "nginx": "proxy",
    "valkey": "Valkey",
    "tests.bench.api": "buyers",
}


def used() -> dict[str, float]:
    """Return the CPU seconds that each part has used so far, including those of child processes that have ended."""
    found: dict[str, float] = defaultdict(float)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = _part(folder)
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        if name:
            found[name] += sum(int(field) for field in fields[11:15]) / TICKS
    return dict(found)


def _part(folder: Path) -> str:
    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    if "postgres" in words.partition(" ")[0]:
        return "bank's PostgreSQL" if "/bank/" in _postmaster(folder) else "PostgreSQL"
    return next((name for mark, name in PARTS.items() if mark in words), "")


def _postmaster(folder: Path) -> str:
    """For a PostgreSQL process, return the command line of its postmaster, which contains the data folder."""
    own = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    if " -D " in own:
        return own
    parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
    return Path("/proc", parent, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
