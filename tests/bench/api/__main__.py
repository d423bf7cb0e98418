"""Runs sections of the benchmark: `python -m tests.bench.api [section] …`. Without a section, runs all of them.

SCALE=0.05 makes a small trial run, with fewer rounds, holds and rows. Its figures mean little. The exit code is
1 if a budget is missed. SIZE=3000000 is the number of checkouts in the database of `size` and `portal`, and
FOLDER=/var/tmp/bench keeps this database for the next run.
"""

import argparse
import contextlib
import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from config.local import engines, environment
from tests.bench.api import report

SECTIONS = (
    "requests",
    "pages",
    "order",
    "lag",
    "logins",
    "sale",
    "lapse",
    "size",
    "portal",
)
# Of the caller's environment variables, only these are kept, because others could change the figures.
SHELLS = {
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
}
FREE_OF_LIMITS = dict.fromkeys(("LIMIT_READS", "LIMIT_CREATES", "LIMIT_VERBS"), "999999/second")


def main() -> int:
    """Start PostgreSQL and Valkey, run the sections in this process, and return the exit code."""
    parser = argparse.ArgumentParser(prog="tests.bench.api", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}")
    asked = parser.parse_args().sections or list(SECTIONS)
    if unknown := set(asked) - set(SECTIONS):
        parser.error(f"unknown section {', '.join(sorted(unknown))}: there are {', '.join(SECTIONS)}")
    scale = float(os.environ.get("SCALE", "1"))
    # On SIGTERM, leave the `with` block, so that the engines are stopped and a temporary folder is deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with _folder() as folder, _running(folder):
        import django

        django.setup()
        for section in asked:
            report.title(section)
            importlib.import_module(f"tests.bench.api.{section}").run(folder, scale)
    return report.conclude()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Yield the folder that FOLDER names or, if it is not set, a temporary folder."""
    if kept := os.environ.get("FOLDER"):
        yield Path(kept)
    else:
        with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
            yield Path(name)


@contextlib.contextmanager
def _running(folder: Path) -> Iterator[None]:
    """Run PostgreSQL and Valkey with durable writes. Set this process's environment for them."""
    kept = {name: text for name, text in os.environ.items() if name in SHELLS}
    variables = environment.variables_of_run(kept | FREE_OF_LIMITS, folder)
    with engines.running(folder) as own, psycopg.connect(own.database_url, autocommit=True) as connection:
        # The section `lag` reads the commit times of voids.
        connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        # The sections `order` and `size` read the costs of statements.
        connection.execute("ALTER SYSTEM SET shared_preload_libraries = pg_stat_statements")
        # With a larger limit, there are fewer checkpoints while the database is filled.
        connection.execute("ALTER SYSTEM SET max_wal_size = '4GB'")
    with engines.running(folder) as own:
        os.environ.update(variables, DATABASE_URL=own.database_url, REDIS_URL=own.redis_url)
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        yield


if __name__ == "__main__":
    sys.exit(main())
