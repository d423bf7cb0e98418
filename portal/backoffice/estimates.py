"""Estimates of table sizes, from PostgreSQL's statistics. No rows are counted."""

from collections.abc import Sequence

from django.apps import apps

from config.lib.database import queries
from portal import statements

SMALLEST = 1000  # smaller estimates are not shown, because they soon become wrong


def estimated_rows(models: Sequence[str]) -> dict[str, int]:
    """Return the number of rows in each model's table, as PostgreSQL estimated it in its last analysis of the table.

    Tables that were never analyzed are left out.
    """
    tables = {apps.get_model(model)._meta.db_table: model for model in models}
    estimates = queries.rows(statements.ESTIMATE_ROWS, [[f'"{table}"' for table in tables]])
    return {tables[table]: int(rows) for table, rows in estimates if rows > 0}


def in_words(rows: int) -> str:
    """Return an estimate as text, such as "about 1,200", or "" for a small estimate."""
    if rows < SMALLEST:
        return ""
    return f"about {round(rows, 2 - len(str(rows))):,}"
