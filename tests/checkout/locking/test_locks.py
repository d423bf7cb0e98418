"""Functions that lock rows take ids as arguments, because a row that was read before the lock can be out of date."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

APPS = ("payments", "checkout", "webhooks", "hosted_page", "portal")
ROWS = {"Checkout", "PaymentRequest", "Payment", "Operation", "Refund"}
LOCKS = {
    "locked",
    "lock_share",
    "_lock_changeable",
    "_lock_changeable_by",
    "_lock_closing",
    "_lock_subscription",
    "_lock_target",
    "select_for_update",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    for app in APPS:
        for path in (settings.BASE_DIR / app).rglob("*.py"):
            if "migrations" not in path.parts and "management" not in path.parts:
                yield from of_module(path)


def of_module(path: Path) -> Iterator[tuple[str, Function]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield f"{path.relative_to(settings.BASE_DIR)}::{node.name}", node


def begins_transaction(function: Function) -> bool:
    """Return whether the function begins its own transaction."""
    return any(isinstance(node, ast.keyword) and node.arg == "durable" for node in ast.walk(function))


def locks(function: Function) -> bool:
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    names = (
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        for call in calls
    )
    return any(name in LOCKS for name in names)


def rows_taken(function: Function) -> set[str]:
    """Return the names of the models whose rows the function takes as arguments."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    hints = [ast.unparse(argument.annotation) for argument in arguments if argument.annotation]
    return {
        row
        for row in ROWS
        for hint in hints
        if row in hint.replace("|", " ").replace("[", " ").replace("]", " ").split()
    }


LOCKING = [
    (name, function) for name, function in functions() if begins_transaction(function) or locks(function)
]


@pytest.mark.parametrize(("name", "function"), LOCKING, ids=[name for name, _ in LOCKING])
def test_functions_that_lock_take_an_id_and_not_a_row(name: str, function: Function) -> None:
    assert rows_taken(function) == set(), f"{name} locks: give it the id of what it shall read under the lock"


def test_the_check_finds_a_function_that_locks_and_takes_a_row() -> None:
    source = (
        "def stop(operation: Operation) -> None:\n    with transaction.atomic(durable=True):\n        pass\n"
    )
    bad = ast.parse(source).body[0]
    assert isinstance(bad, ast.FunctionDef)
    assert begins_transaction(bad) and rows_taken(bad) == {"Operation"}
    assert len(LOCKING) > 20


@pytest.mark.django_db
def test_the_database_has_timeouts_for_locks_statements_and_idle_transactions() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT unnest(setconfig) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase"
            " JOIN pg_roles r ON r.oid = s.setrole WHERE d.datname = current_database() AND r.rolname = current_user"
        )
        assert {row for (row,) in cursor.fetchall()} == {
            "lock_timeout=3000",
            "statement_timeout=15000",
            "idle_in_transaction_session_timeout=20000",
            "tcp_user_timeout=20000",
        }
