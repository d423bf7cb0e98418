"""All migrations after the first two of an app neither block nor break running processes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader
from pytest_django.plugin import DjangoDbBlocker

from tests.house.migrations import offences

pytestmark = pytest.mark.rule("environment.migrations")
# The migrations that create an app's tables. They cannot disturb an earlier release, because an earlier release does
# not use these tables.
FIRST = ("0001_initial", "0002_sql")
# Statements that fail when a migration without a transaction has stopped in the middle and runs again.
ONCE = re.compile(
    r"CREATE (?:TRIGGER|FUNCTION|VIEW|TABLE)|ALTER TABLE \S+ ADD (?:COLUMN|CONSTRAINT (?!.*USING INDEX))",
    re.IGNORECASE,
)
ALLOWED: dict[str, str] = {}  # parts of statements that are harmless here, each with the reason


def our_migrations() -> Iterator[tuple[str, str]]:
    """Yield the app and the name of each of our migrations."""
    for app in apps.get_app_configs():
        if "site-packages" not in app.path:
            for path in sorted(Path(app.path).glob("migrations/0*.py")):
                yield app.label, path.stem


def test_later_migrations_have_no_unsafe_statement(
    monkeypatch: pytest.MonkeyPatch, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    monkeypatch.setattr(migrations.RunPython, "database_forwards", lambda *arguments: None)
    found = list(our_migrations())
    assert {name for _, name in found} >= set(FIRST)
    with django_db_blocker.unblock():  # without a transaction, in which an index cannot be built concurrently
        loader = MigrationLoader(connection)
        for key in found:
            if key[1] not in FIRST:
                assert list(faults(loader, key)) == [], key


def faults(loader: MigrationLoader, key: tuple[str, str]) -> Iterator[str]:
    """Yield the statements of a migration that block or break running processes, or that fail in a second run."""
    migration = loader.graph.nodes[key]
    state = loader.project_state(key, at_end=False)
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(state, editor, collect_sql=True)
    statements = [line for line in editor.collected_sql if not line.startswith("--")]
    yield from offences(statements, allowed=tuple(ALLOWED))
    if not migration.atomic:
        once = (line for line in statements if ONCE.match(" ".join(line.split())))
        yield from (f"cannot be run again: CREATE OR REPLACE, or its own migration: {line}" for line in once)
    elif any(isinstance(operation, migrations.RunPython) for operation in migration.operations):
        yield "long work is done outside of a transaction, and can be resumed"


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE INDEX "a" ON "payments_operation" ("kind")',
        'CREATE UNIQUE INDEX "a" ON "payments_operation" ("kind")',
        'CREATE INDEX CONCURRENTLY "a" ON "payments_operation" ("kind")',
        'DROP INDEX IF EXISTS "a"',
        'ALTER TABLE "payments_operation" ADD CONSTRAINT "a" CHECK ("amount" > 0)',
        'ALTER TABLE "payments_operation" ADD CONSTRAINT "a" FOREIGN KEY ("b") REFERENCES "c" ("id")',
        'ALTER TABLE "payments_operation" ADD CONSTRAINT "a" UNIQUE ("b")',
        'ALTER TABLE "payments_operation" ALTER COLUMN "a" TYPE bigint USING "a"::bigint',
        'ALTER TABLE "payments_operation" ALTER COLUMN "a" SET NOT NULL',
        'ALTER TABLE "payments_operation" ADD COLUMN "a" integer NOT NULL',
        'ALTER TABLE "payments_operation" ADD COLUMN "a" uuid DEFAULT gen_random_uuid() NOT NULL',
        'ALTER TABLE "payments_operation" ADD COLUMN "a" integer GENERATED ALWAYS AS ("b" + 1) STORED',
        'ALTER TABLE "payments_operation" ALTER COLUMN "a" DROP DEFAULT',
        'ALTER TABLE "payments_operation" RENAME COLUMN "a" TO "b"',
        'ALTER TABLE "payments_operation" RENAME TO "b"',
        'ALTER TABLE "payments_operation" DROP COLUMN "a" CASCADE',
        'DROP TABLE "payments_operation" CASCADE',
        "UPDATE payments_operation SET kind = ''",
        "DELETE FROM payments_operation",
        "LOCK TABLE payments_operation",
        "ALTER TABLE payments_operation SET UNLOGGED",
    ],
)
def test_an_unsafe_statement_is_found(statement: str) -> None:
    assert list(offences([statement]))
    assert list(offences([statement], allowed=[statement])) == []


@pytest.mark.parametrize(
    "statement",
    [
        'DROP INDEX CONCURRENTLY IF EXISTS "a"',
        'ALTER TABLE "payments_operation" ADD CONSTRAINT "a" CHECK ("amount" > 0) NOT VALID',
        'ALTER TABLE "payments_operation" VALIDATE CONSTRAINT "a"',
        'ALTER TABLE "payments_operation" ADD CONSTRAINT "a" UNIQUE USING INDEX "b"',
        'ALTER TABLE "payments_operation" ADD COLUMN "a" integer NULL',
        'ALTER TABLE "payments_operation" ADD COLUMN "a" varchar(5) DEFAULT \'\' NOT NULL',
        'ALTER TABLE "payments_operation" ALTER COLUMN "a" DROP NOT NULL',
        'CREATE TABLE "fresh" ("id" bigint PRIMARY KEY)',
    ],
)
def test_a_safe_statement_is_accepted(statement: str) -> None:
    assert list(offences([statement])) == []


def test_an_unfinished_index_is_dropped_before_it_is_created_again() -> None:
    """An unfinished index is dropped first, because PostgreSQL keeps it and refuses a second index of that name."""
    drop = 'DROP INDEX CONCURRENTLY IF EXISTS "a"'
    make = 'CREATE UNIQUE INDEX CONCURRENTLY "a" ON "payments_operation" ("kind")'
    assert list(offences([drop, make])) == []
    assert len(list(offences([make, drop]))) == 1


def test_statements_on_a_new_table_are_accepted() -> None:
    assert list(offences(['CREATE TABLE "fresh" ("id" bigint)', 'CREATE INDEX "a" ON "fresh" ("id")'])) == []
