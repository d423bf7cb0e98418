"""A migration that cannot have its lock, and the limits of its session."""

import time
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("environment.migrate")]
BEFORE = ("payments", "0004_balance_entries")


def another_session() -> "psycopg.Connection[Any]":
    wanted = connection.get_connection_params()
    place = {name: wanted[name] for name in ("dbname", "user", "host", "port") if wanted.get(name)}
    return psycopg.connect(**place, application_name="checkout-report")


def limits() -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
        return tuple(cursor.fetchone())


def test_says_who_is_in_its_way_and_does_nothing() -> None:
    usual = limits()
    with another_session() as reader:
        reader.execute("SELECT count(*) FROM payments_operation")
        began = time.monotonic()
        with pytest.raises(CommandError, match=r"checkout-report \(pid \d+\), idle in transaction") as told:
            call_command("migrate", *BEFORE, verbosity=0)
        assert 2.5 < time.monotonic() - began < 8
    assert "waited 3 s" in str(told.value)
    with connection.cursor() as cursor:
        cursor.execute("SELECT traceparent FROM payments_operation")
    assert limits() == usual


def test_goes_there_and_back_when_nobody_is() -> None:
    call_command("migrate", *BEFORE, verbosity=0)
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT traceparent FROM payments_operation")
