"""Each migration has its way back: a database that went forward, back to nothing and forward again is the same.

On a database of its own in the tests' engine.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.apps import apps
from psycopg.types.json import Jsonb

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[3]
NAME = "round_trip"
# What a schema is made of, each thing a text. Extensions and what belongs to them are the cluster's.
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


def ours() -> list[str]:
    """Return the labels of our apps that have migrations."""
    migrated = (app for app in apps.get_app_configs() if (Path(app.path) / "migrations").exists())
    return sorted(app.label for app in migrated if "site-packages" not in Path(app.path).parts)


@pytest.fixture
def database_url() -> Iterator[str]:
    """An empty database beside the one that the tests use."""
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
    """Run a script in a process of the service whose database this is."""
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
    labels = ours()
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


OLD = """
INSERT INTO webhooks_event (id, merchant_id, type, body, created_at, request_id)
SELECT gen_random_uuid(), gen_random_uuid(), 'checkout.voided', '', now(), '' FROM generate_series(1, 3)
"""
DATED = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
MigrationExecutor(connection).migrate([("webhooks", "0002_closed_deliveries")])
"""
INDEXED = """
SELECT relname, indisvalid, (SELECT count(*) FROM pg_inherits WHERE inhparent = indexrelid)
FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = 'webhooks_event'::regclass
"""


@pytest.mark.rule("events.order")
def test_events_of_before_lie_at_one_moment_and_what_comes_then_at_its_own(database_url: str) -> None:
    run(database_url, FORWARD)
    run(database_url, DATED)
    with psycopg.connect(database_url, autocommit=True) as database:
        database.execute(OLD)
        run(database_url, FORWARD)
        database.execute(OLD)
        database.execute(OLD)
        moments = "SELECT count(*) FROM webhooks_event GROUP BY written_at ORDER BY written_at"
        assert [count for (count,) in database.execute(moments)] == [3, *[1] * 6]
        partitions = database.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'webhooks_event'::regclass"
        )
        (count,) = partitions.fetchone() or (0,)
        found = {name: state for name, *state in database.execute(INDEXED)}
        assert found["event_written"] == found["event_written_seldom"] == [True, count]
        assert "event_of_merchant" not in found and count > 5


TWO_ORDERS = """
from tests import factories
acme = factories.MerchantFactory.create()
lines = [factories.item(item_ref="a", custom_data={"seat": ["A1", None]}), factories.item(item_ref="b", category="fee")]
for _ in range(2):
    factories.checkout(acme, items=lines, total_amount=2 * 9000)
"""
TO_CHECKOUT = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
MigrationExecutor(connection).migrate([("checkout", "{name}")])
"""
COLUMNS = "id, checkout_id, position, item_ref, name, quantity, unit_price, currency, category, custom_data"
ROWS = f"SELECT {COLUMNS} FROM checkout_item WHERE checkout_id = %s ORDER BY position"
BILLS = "SELECT checkout_id, lines FROM checkout_bill ORDER BY checkout_id"


def test_items_go_into_their_bill_and_back_whichever_release_writes_them(database_url: str) -> None:
    run(database_url, FORWARD + TWO_ORDERS)
    with psycopg.connect(database_url, autocommit=True) as database:

        def rows(checkout_uuid: Any) -> list[Any]:
            return database.execute(ROWS, [checkout_uuid]).fetchall()

        def write_as_before(made: list[Any]) -> None:
            """As the release before does: all lines by one statement."""
            values = ", ".join(f"({', '.join(['%s'] * 10)})" for _ in made)
            given = [Jsonb(each) if isinstance(each, dict) else each for row in made for each in row]
            database.execute(f"INSERT INTO checkout_item ({COLUMNS}) VALUES {values}", given)

        bills = database.execute(BILLS).fetchall()
        (first, lines), (second, same) = bills
        made = rows(second)
        assert lines == same == [list(row[3:]) for row in made], (
            "the release before reads what this one writes"
        )

        run(database_url, TO_CHECKOUT.format(name="0020_leads_in_no_index"))
        assert [row[3:] for row in rows(first)] == [row[3:] for row in made]
        database.execute("DELETE FROM checkout_item WHERE checkout_id = %s", [second])
        run(database_url, TO_CHECKOUT.format(name="0021_bills"))
        write_as_before(made)
        run(database_url, FORWARD)
        assert database.execute(BILLS).fetchall() == bills

        database.execute("DELETE FROM checkout_bill WHERE checkout_id = %s", [second])
        write_as_before(made)
        assert database.execute(BILLS).fetchall() == bills


TWO_MERCHANTS = """
from payments.models import Payment
from tests import factories
for account in ("acct_moved", "acct_stayed"):
    merchant = factories.MerchantFactory.create(name=account, provider_account=account)
    for _ in range(2):
        order = factories.checkout(merchant)
        facts = {"subject": order.pk, "checkout_uuid": order.pk, "status": "declined", "amount": 9000}
        Payment.objects.create(merchant=merchant, provider_account=account, currency="GBP", **facts)
"""
BEFORE_ACCOUNTS_WERE_KEPT = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
MigrationExecutor(connection).migrate([("payments", "0014_no_operation_locks_its_payment")])
"""
MOVE = "UPDATE payments_merchant SET provider_account = %s WHERE name = 'acct_moved'"
FORMER = "SELECT provider_account FROM payments_formeraccount ORDER BY id"


@pytest.mark.rule("provider.accounts")
def test_accounts_that_merchants_had_before_are_kept_whichever_release_changes_them(
    database_url: str,
) -> None:
    run(database_url, FORWARD + TWO_MERCHANTS + BEFORE_ACCOUNTS_WERE_KEPT)
    with psycopg.connect(database_url, autocommit=True) as database:
        database.execute(MOVE, ["acct_new"])
        run(database_url, FORWARD)
        assert database.execute(FORMER).fetchall() == [("acct_moved",)]
        for account in ("acct_new", "acct_newer", "acct_new"):  # as the release before does
            database.execute(MOVE, [account])
        assert database.execute(FORMER).fetchall() == [("acct_moved",), ("acct_new",), ("acct_newer",)]
