"""About how many rows a table has, as PostgreSQL itself estimates it: nothing is counted."""

from collections.abc import Sequence

from django.apps import apps
from django.db import connection

SMALLEST = 1000  # fewer are soon others than when PostgreSQL last looked
_ROWS = "SELECT relname, reltuples FROM pg_class WHERE oid = ANY(%s::regclass[])"


def read(models: Sequence[str]) -> dict[str, int]:
    """Return about how many rows each model's table had when last analyzed, without those that never were."""
    tables = {apps.get_model(model)._meta.db_table: model for model in models}
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [[f'"{table}"' for table in tables]])
        return {tables[table]: int(rows) for table, rows in cursor.fetchall() if rows > 0}


def in_words(rows: int) -> str:
    """Return an estimate as it is shown: "about 1,200"; nothing for few."""
    if rows < SMALLEST:
        return ""
    return f"about {round(rows, 2 - len(str(rows))):,}"
