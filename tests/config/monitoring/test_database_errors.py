"""The SQLSTATE of a database error is in the log line of the error and in the metrics."""

import json
import logging
import sys

import psycopg
import pytest
import structlog
from django.db import DatabaseError, connection

from config import logs
from config.monitoring import database_errors

pytestmark = pytest.mark.rule("environment.logs")


def line_of(error: BaseException) -> dict[str, object]:
    """Return the JSON line of a log record with this exception."""
    formatter = structlog.stdlib.ProcessorFormatter(
        **{name: value for name, value in logs._formatter_settings(False).items() if name != "()"}
    )
    record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", None, (type(error), error, None))
    return dict(json.loads(formatter.format(record)))


@pytest.mark.django_db
def test_a_database_error_is_named_and_counted() -> None:
    counted = database_errors.ERRORS.labels("22012")._value
    before = counted.get()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
    except DatabaseError as error:
        assert isinstance(error.__cause__, psycopg.errors.DivisionByZero)
        line = line_of(error)
    assert line["sqlstate"] == "22012" and counted.get() == before + 1
    connection.set_rollback(True)


def test_another_error_has_no_code() -> None:
    assert "sqlstate" not in line_of(ValueError("x"))


def test_a_long_chain_of_causes_ends() -> None:
    error = ValueError("x")
    error.__cause__ = error
    assert "sqlstate" not in line_of(error)


def test_an_error_without_exc_info_is_logged() -> None:
    assert database_errors.add_sqlstate(None, "", {"event": "x", "exc_info": sys.exc_info()}) == {
        "event": "x",
        "exc_info": (None, None, None),
    }
