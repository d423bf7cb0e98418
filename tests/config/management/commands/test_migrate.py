"""A migration that cannot get a lock is rolled back, or can be continued later."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.journeys.service import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("environment.migrate")]
ROLE = "checkout_service"
# The released migrations of checkout, and a later migration that exists only in these tests.
SHIPPED = ("0001_initial", "0002_sql")
AS_SHIPPED = """
from importlib import import_module

Migration = import_module("checkout.migrations.{name}").Migration
"""
LATER = """
from django.db import migrations


def column(table):
    return migrations.RunSQL(
        f"ALTER TABLE {{table}} ADD COLUMN IF NOT EXISTS later integer",
        f"ALTER TABLE {{table}} DROP COLUMN IF EXISTS later",
    )


class Migration(migrations.Migration):
    atomic = {atomic}
    dependencies = [("checkout", "0002_sql")]
    operations = [column("checkout_customer"), column("payments_operation")]
"""


def another_session() -> "psycopg.Connection[Any]":
    wanted = connection.get_connection_params()
    place = {name: wanted[name] for name in ("dbname", "user", "host", "port") if wanted.get(name)}
    patient = "-c idle_in_transaction_session_timeout=0"
    return psycopg.connect(**place, application_name="checkout-report", options=patient)


def limits() -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
        return tuple(cursor.fetchone())


@pytest.fixture
def later(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> Iterator[None]:
    """Add a later migration to checkout. The parameter decides whether it runs in a transaction."""
    package = tmp_path / "later_migrations"
    package.mkdir()
    package.joinpath("__init__.py").touch()
    for name in SHIPPED:
        package.joinpath(f"{name}.py").write_text(AS_SHIPPED.format(name=name))
    package.joinpath("0003_later.py").write_text(LATER.format(atomic=request.param))
    monkeypatch.syspath_prepend(tmp_path)
    settings.MIGRATION_MODULES = {"checkout": "later_migrations"}
    yield
    call_command("migrate", "checkout", SHIPPED[-1], verbosity=0)
    for name in [name for name in sys.modules if name.startswith("later_migrations")]:
        del sys.modules[name]


def widened() -> set[str]:
    """Return the tables to which the later migration has added its column."""
    return {
        table
        for (table,) in rows("SELECT table_name FROM information_schema.columns WHERE column_name = 'later'")
    }


def rows(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


@pytest.mark.long
@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("later", [True], indirect=True)
def test_names_the_blocking_session_and_changes_nothing() -> None:
    usual = limits()
    with another_session() as reader:
        reader.execute("SELECT count(*) FROM payments_operation")
        began = time.monotonic()
        with pytest.raises(CommandError, match=r"checkout-report \(pid \d+\), idle in transaction") as told:
            call_command("migrate", verbosity=0)
        assert 2.5 < time.monotonic() - began < 8
    said = str(told.value)
    assert said.startswith("checkout.0003_later waited 3 s") and "The migration changed nothing." in said
    assert widened() == set()
    assert limits() == usual
    call_command("migrate", verbosity=0)
    assert widened() == {"checkout_customer", "payments_operation"}


@pytest.mark.long
@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("later", [False], indirect=True)
def test_resumes_a_non_transactional_migration_that_broke_off() -> None:
    with another_session() as reader:
        reader.execute("SELECT count(*) FROM payments_operation")
        with pytest.raises(CommandError, match=r"checkout-report \(pid") as told:
            call_command("migrate", verbosity=0)
    said = str(told.value)
    assert said.startswith("checkout.0003_later waited 3 s") and "was stopped" in said
    assert "The finished steps remain" in said and "Nothing" not in said
    assert widened() == {"checkout_customer"}
    call_command("migrate", verbosity=0)
    assert widened() == {"checkout_customer", "payments_operation"}


@pytest.fixture
def two_roles() -> Iterator[dict[str, str]]:
    """Let `migrate` create the service's role; yield the variables of an installation with two roles."""
    owner = os.environ["DATABASE_URL"]
    variables = os.environ | {
        "DATABASE_OWNER_URL": owner,
        "DATABASE_URL": owner.replace("checkout@", f"{ROLE}@"),
    }
    assert migrated(variables) == ""
    yield variables
    rows(f"DROP OWNED BY {ROLE}")
    rows(f"DROP ROLE {ROLE}")


def migrated(variables: dict[str, str]) -> str:
    """Migrate in a separate process; return its error text, or "" if the migration succeeds."""
    command = (sys.executable, "manage.py", "migrate", "--verbosity", "0")
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert bool(done.stderr) == bool(done.returncode)
    return done.stderr


@pytest.mark.long
def test_limits_the_wait_for_the_steps_after_the_migrations(two_roles: dict[str, str]) -> None:
    grant = f"GRANT SELECT ON payments_operation TO {ROLE}"
    limit = f"ALTER ROLE {ROLE} IN DATABASE checkout SET work_mem = '5MB'"
    for statement in (grant, limit):
        with another_session() as other:
            other.execute(statement)
            said = migrated(two_roles)
            other.rollback()
        assert "migrate waited 3 s" in said and "The finished steps remain" in said, statement
        assert re.search(r"\n  checkout-report \(pid \d+\)[^\n]*\n", said) and "None" not in said, statement
    assert migrated(two_roles) == ""
