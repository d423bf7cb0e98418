"""Migrations that were shipped stay as they are, and later ones lock and break nothing that runs."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader

from tests.house.migrations import offences

pytestmark = pytest.mark.rule("environment.migrations")
HERE = Path(__file__).parent
FROZEN: dict[str, str] = json.loads((HERE / "frozen_migrations.json").read_text())
# The first version's own: no release was there before. What they do to their tables nobody saw.
FIRST = {"bank": 1, "checkout": 2, "hosted_page": 2, "payments": 4, "portal": 3, "webhooks": 1}
# Parts of statements that lock or break nothing here, each with the reason.
# What cannot be run again after a migration without a transaction broke off.
ONCE = re.compile(
    r"CREATE (?:TRIGGER|FUNCTION|VIEW|TABLE)|ALTER TABLE \S+ ADD (?:COLUMN|CONSTRAINT (?!.*USING INDEX))",
    re.IGNORECASE,
)
# Shipped before that was looked at: if its index breaks off, its two columns are dropped before it is run again.
MENDED_BY_HAND = ("checkout.0017_requests_told",)
ALLOWED: dict[str, str] = {
    "ALTER COLUMN phone TYPE text": "from varchar(16) on: writes no row and no index, PostgreSQL reads them alike",
    "UPDATE payments_discrepancy SET kind = replace(": "one row a day and merchant at most, written once",
    "ALTER TABLE bank_cardsession SET UNLOGGED": "a day of visits, at the sandbox bank alone",
    "LOCK TABLE checkout_checkout IN": "for a moment, which dropping a table that refers to it asks for anyway",
    "LOCK TABLE bank_cardtoken, bank_charge IN": "for a moment, and in an authorization's order",
    "LOCK TABLE checkout_item IN": "for the same moment",
    "ALTER VIEW checkout_item_of_bill RENAME": "the name is given away in the transaction that made the view",
    'DROP TABLE "checkout_item" CASCADE': "a view of its name takes its place in the same transaction",
    "DROP CONSTRAINT IF EXISTS checkout_customer_phone_key": "the same is unique by its digest by then",
}


def shipped() -> dict[str, Path]:
    """Return each migration of ours by its name."""
    found = {}
    for app in apps.get_app_configs():
        if "site-packages" not in app.path:
            for path in sorted(Path(app.path).glob("migrations/0*.py")):
                found[f"{app.label}.{path.stem}"] = path
    return found


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_was_shipped_stays_as_it_is() -> None:
    """A database that has run one never runs it again: write another instead, and add it to the list when it ships."""
    assert {name: digest(path) for name, path in shipped().items()} == FROZEN


# No installation exists yet: these replace tables without a path from the old ones, and become part of the first
# migration of their app when all are squashed.
BEFORE_ANY_INSTALLATION = (
    "payments.0018_movements",
    "payments.0020_refunds_beside_refunds",
    "portal.0013_time_passes_for_movements",
)


def later() -> list[str]:
    names = [name for name in FROZEN if name not in BEFORE_ANY_INSTALLATION]
    return [name for name in names if int(name.partition(".")[2][:4]) > FIRST[name.partition(".")[0]]]


@pytest.mark.django_db
@pytest.mark.parametrize("name", later())
def test_a_later_one_locks_and_breaks_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations.RunPython, "database_forwards", lambda *arguments: None)
    loader = MigrationLoader(connection)
    label, _, stem = name.partition(".")
    key = (label, stem)
    migration = loader.graph.nodes[key]
    state = loader.project_state(key, at_end=False)
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(state, editor, collect_sql=True)
    statements = [line for line in editor.collected_sql if not line.startswith("--")]
    assert list(offences(statements, allowed=tuple(ALLOWED))) == []
    may_break_off = not migration.atomic and name not in MENDED_BY_HAND
    once = [line for line in statements if may_break_off and ONCE.match(" ".join(line.split()))]
    assert once == [], "it cannot go on where it broke off: CREATE OR REPLACE, or in a migration of its own"
    runs_python = any(isinstance(operation, migrations.RunPython) for operation in migration.operations)
    assert not (runs_python and migration.atomic), (
        "long work is done outside of a transaction, and can be resumed"
    )


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
def test_an_offence_is_seen(statement: str) -> None:
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
def test_what_locks_nothing_is_let_be(statement: str) -> None:
    assert list(offences([statement])) == []


def test_an_index_is_made_anew_where_a_migration_that_broke_off_is_run_again() -> None:
    """PostgreSQL leaves an index that was not finished, and refuses to make another of its name."""
    drop = 'DROP INDEX CONCURRENTLY IF EXISTS "a"'
    make = 'CREATE UNIQUE INDEX CONCURRENTLY "a" ON "payments_operation" ("kind")'
    assert list(offences([drop, make])) == []
    assert len(list(offences([make, drop]))) == 1


def test_what_is_done_to_a_table_of_its_own_counts_for_nothing() -> None:
    assert list(offences(['CREATE TABLE "fresh" ("id" bigint)', 'CREATE INDEX "a" ON "fresh" ("id")'])) == []
