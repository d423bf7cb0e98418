"""Creates and copies the tests' template database. It is migrated once. Each test run's PostgreSQL gets a copy.

The template is stored under `.local`. It is created again if a file that affects it changes, and each day, because its
partitions depend on the date. The keys that encrypt its data are stored next to it and copied with it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from config.local import engines, environment

ROOT = Path(__file__).resolve().parents[1]
FOLDER = environment.FOLDER / "tests"
CLUSTER = "postgres"
# The files that affect the content of the database: our migrations and the code that runs them. The lock
# files are included because they fix the versions of PostgreSQL and of the libraries that have migrations.
MAKERS = (
    *("*/migrations/*.py", "*/providers/*/migrations/*.py"),
    *("*/sql/*.sql", "*/providers/*/sql/*.sql", "config/**/*.py", "requirements*.lock"),
)
SHELL = ("PATH", "HOME", "TMPDIR", "LANG")


def copy_to(folder: Path) -> None:
    """Copy the migrated cluster and its keys into a folder that has no cluster.

    The first process creates the template. All other processes wait for it, even those of another run.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        template = FOLDER / digest(ROOT)
        if not template.exists():
            _make(template)
        shutil.copytree(template / CLUSTER, folder / CLUSTER)
        shutil.copy2(template / environment.SECRETS, folder)


def digest(root: Path) -> str:
    """Return a digest of the date and of the files in this project folder that affect the database."""
    found = hashlib.sha256(f"{datetime.now(UTC).date()}\n".encode())
    for path in sorted(path for pattern in MAKERS for path in root.glob(pattern)):
        content = path.read_bytes()
        found.update(f"{path.relative_to(root)}\n{len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


def _make(template: Path) -> None:
    """Remove earlier templates and create the new one.

    The template gets its final name only when it is complete, so that no process uses an incomplete template.
    """
    for earlier in FOLDER.glob("*/"):
        shutil.rmtree(earlier)
    fresh = template.with_suffix(".tmp")
    _migrate(fresh)
    fresh.rename(template)


def _migrate(folder: Path) -> None:
    """Create a PostgreSQL cluster with a migrated database in the folder."""
    variables = {name: os.environ[name] for name in SHELL if name in os.environ}
    variables = environment.variables_of_run(variables, folder) | {"REDIS_URL": "redis://127.0.0.1:1/0"}
    with engines.running(folder, durable=False, redis_url=variables["REDIS_URL"]) as own:
        subprocess.run(
            (sys.executable, "manage.py", "migrate", "--verbosity", "0"),
            env=variables | {"DATABASE_URL": own.database_url},
            cwd=ROOT,
            check=True,
        )
