"""Encrypts a column of numbers, a batch at a time, each in a transaction of its own: what broke off is run again."""

from typing import Any

from django.db import migrations, transaction

from config.lib.crypto import FindableTextField

ROWS = 1000
PLAIN = "SELECT id, phone FROM {table} WHERE phone LIKE '+%%' LIMIT %s FOR UPDATE"
SEALED = "SELECT id, phone FROM {table} WHERE phone <> '' AND phone NOT LIKE '+%%' LIMIT %s FOR UPDATE"
WRITE = "UPDATE {table} SET phone = %s WHERE id = %s"


def seal(table: str) -> migrations.RunPython:
    """Return the operation that encrypts a table's column `phone`, and back."""
    field = FindableTextField()

    def forwards(_: Any, editor: Any) -> None:
        _rewrite(editor.connection, table, PLAIN, field.get_prep_value)

    def backwards(_: Any, editor: Any) -> None:
        _rewrite(editor.connection, table, SEALED, field.from_db_value)

    return migrations.RunPython(forwards, backwards)


def _rewrite(connection: Any, table: str, select: str, change: Any) -> None:
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(select.format(table=table), [ROWS])
            rows = [(change(phone), key) for key, phone in cursor.fetchall()]
            cursor.executemany(WRITE.format(table=table), rows)
        if not rows:
            return
