"""A migration that cannot have its lock, what is left of it, and the limits of its session."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from checkout.migrations._sealing import ROWS
from tests.journeys.service import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("environment.migrate")]
BEFORE, AT = ("payments", "0004_balance_entries"), ("payments", "0005_traceparent")
ROLE = "checkout_service"
PLAIN_NUMBERS = ("checkout", "0004_people_found")
MORE = ROWS + 200  # customers: a batch is finished before the next one meets the last of them
FILL = """
INSERT INTO checkout_customer (id, phone, name, created_at)
SELECT gen_random_uuid(), '+44770' || 1000000 + n, '', now() FROM generate_series(1, %s) AS n
"""
# Whoever has the lock holds up the write of one row, and nothing else of its table.
HELD_UP = """
CREATE FUNCTION wait_for_support() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.phone = '{phone}' THEN PERFORM pg_advisory_xact_lock(1); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER held_up BEFORE UPDATE ON checkout_customer FOR EACH ROW EXECUTE FUNCTION wait_for_support()
"""
LAST = "SELECT phone FROM checkout_customer WHERE phone LIKE '+%%' LIMIT 1 OFFSET %s"
SEALED = "SELECT id, phone FROM checkout_customer WHERE phone NOT LIKE '+%' ORDER BY id"


def another_session() -> "psycopg.Connection[Any]":
    wanted = connection.get_connection_params()
    place = {name: wanted[name] for name in ("dbname", "user", "host", "port") if wanted.get(name)}
    patient = "-c idle_in_transaction_session_timeout=0"
    return psycopg.connect(**place, application_name="checkout-report", options=patient)


def limits() -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
        return tuple(cursor.fetchone())


@pytest.mark.long
def test_says_who_is_in_its_way_and_does_nothing() -> None:
    usual = limits()
    call_command("migrate", *AT, verbosity=0)
    with another_session() as reader:
        reader.execute("SELECT count(*) FROM payments_operation")
        began = time.monotonic()
        with pytest.raises(CommandError, match=r"checkout-report \(pid \d+\), idle in transaction") as told:
            call_command("migrate", *BEFORE, verbosity=0)
        assert 2.5 < time.monotonic() - began < 8
    said = str(told.value)
    assert said.startswith("payments.0005_traceparent waited 3 s") and "Nothing of it is done." in said
    with connection.cursor() as cursor:
        cursor.execute("SELECT traceparent FROM payments_operation")
    assert limits() == usual
    call_command("migrate", verbosity=0)


@pytest.mark.long
def test_goes_there_and_back_when_nobody_is() -> None:
    call_command("migrate", *BEFORE, verbosity=0)
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT traceparent FROM payments_operation")


@pytest.fixture
def plain_numbers() -> Iterator[None]:
    """Customers whose numbers no release has encrypted yet, more than a batch of them."""
    call_command("migrate", *PLAIN_NUMBERS, verbosity=0)
    rows(FILL, MORE)
    ((last,),) = rows(LAST, MORE - 1)
    rows(HELD_UP.format(phone=last))
    yield
    rows("DROP FUNCTION wait_for_support CASCADE")
    call_command("migrate", verbosity=0)


def rows(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


@pytest.mark.usefixtures("plain_numbers")
@pytest.mark.long
def test_goes_on_where_one_that_has_no_transaction_broke_off() -> None:
    with another_session() as support:
        support.execute("SELECT pg_advisory_xact_lock(1)")
        with pytest.raises(CommandError, match=r"checkout-report \(pid") as told:
            call_command("migrate", verbosity=0)
    said = str(told.value)
    assert said.startswith("checkout.0005_numbers_encrypted waited 3 s") and "broke off" in said
    assert "What it had finished stays" in said and "Nothing" not in said
    finished = rows(SEALED)
    assert len(finished) == ROWS
    call_command("migrate", verbosity=0)
    sealed = rows(SEALED)
    assert len(sealed) == MORE
    assert set(finished) < set(sealed), "what was encrypted once was encrypted anew"


@pytest.fixture
def two_roles() -> Iterator[dict[str, str]]:
    """The variables of an installation whose service owns nothing; `migrate` has made its role."""
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
    """Migrate in a process of its own; return why it could not."""
    command = (sys.executable, "manage.py", "migrate", "--verbosity", "0")
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert bool(done.stderr) == bool(done.returncode)
    return done.stderr


@pytest.mark.long
def test_waits_no_longer_for_what_comes_after_the_migrations(two_roles: dict[str, str]) -> None:
    grant = f"GRANT SELECT ON payments_operation TO {ROLE}"
    limit = f"ALTER ROLE {ROLE} IN DATABASE checkout SET work_mem = '5MB'"
    for statement in (grant, limit):
        with another_session() as other:
            other.execute(statement)
            said = migrated(two_roles)
            other.rollback()
        assert "migrate waited 3 s" in said and "What it had finished stays" in said, statement
        assert re.search(r"\n  checkout-report \(pid \d+\)[^\n]*\n", said) and "None" not in said, statement
    assert migrated(two_roles) == ""
