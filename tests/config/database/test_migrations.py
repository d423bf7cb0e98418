"""Each migration can be reversed: forward, back to no tables and forward again gives the same schema.

The test uses a separate database on the tests' PostgreSQL.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.apps import apps

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[3]
NAME = "round_trip"
# Queries that return each part of a schema as texts, without the functions that extensions define.
MADE_OF = {
    "columns": """
        SELECT format('%I.%I %s %s null=%s default=%s identity=%s', table_name, column_name, ordinal_position,
                      concat_ws(' ', data_type, udt_name, character_maximum_length, numeric_precision),
                      is_nullable, column_default, identity_generation)
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "tables": """
        SELECT format('%s %I %s %s', relkind, relname, relpersistence, reloptions)
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'c'""",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": """
        SELECT format('%s %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "triggers": """
        SELECT format('%s %s', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal""",
    "functions": """
        SELECT pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')""",
}
Schema = dict[str, list[str]]


def our_apps() -> list[str]:
    """Return the labels of our apps that have migrations."""
    migrated = (app for app in apps.get_app_configs() if (Path(app.path) / "migrations").exists())
    return sorted(app.label for app in migrated if "site-packages" not in Path(app.path).parts)


@pytest.fixture
def database_url() -> Iterator[str]:
    """Create an empty database next to the one that the tests use, and yield its URL."""
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {NAME} TEMPLATE template0")
        yield urlsplit(url)._replace(path=f"/{NAME}").geturl()
        server.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


FORWARD = "from django.core.management import call_command; call_command('migrate', verbosity=0)"
BACK = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
MigrationExecutor(connection).migrate([(label, None) for label in {labels}])
"""


def run(database_url: str, script: str) -> None:
    """Run a script with `manage.py shell`, in a separate process that uses this database."""
    command = (sys.executable, "manage.py", "shell", "--no-imports", "-c", script)
    variables = os.environ | {"DATABASE_URL": database_url}
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def schema(database_url: str) -> Schema:
    with psycopg.connect(database_url) as connection:
        return {
            kind: sorted(text for (text,) in connection.execute(query).fetchall())
            for kind, query in MADE_OF.items()
        }


def test_forward_back_and_forward_again_is_the_same(database_url: str) -> None:
    labels = our_apps()
    assert {"payments", "webhooks", "checkout", "hosted_page", "portal"} < set(labels)
    run(database_url, FORWARD)
    first = schema(database_url)
    assert all(first.values())

    run(database_url, BACK.format(labels=labels))
    nothing = schema(database_url)
    assert nothing["triggers"] == nothing["functions"] == []
    mine = tuple(f"{label}_" for label in labels)
    left = [column for column in nothing["columns"] if column.startswith(mine)]
    assert left == []

    run(database_url, FORWARD)
    assert schema(database_url) == first
