"""Helpers that read query plans: which tables, indexes and partitions PostgreSQL would read for a query."""

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import connection


def scans(sql: str) -> Iterator[str]:
    """Yield the tables and indexes that a query would read completely, according to its plan."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
        answer = cursor.fetchone()[0]
    nodes: list[dict[str, Any]] = [(json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]]
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        whole_index = "Index Name" in node and "Index Cond" not in node
        if node["Node Type"] == "Seq Scan" or whole_index:
            yield node.get("Index Name") or node["Relation Name"]


def days(sql: str) -> set[str]:
    """Return the days of the partitions that a query would read, as YYYYMMDD, according to the query's plan.

    The default partition is left out.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    return set(re.findall(r" on (?:webhooks|checkout)_[a-z_]+_(\d{8})\b", plan))


def since(moment: datetime) -> set[str]:
    """Return the days from the day before `moment` on that have a partition, as YYYYMMDD."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'")
        found = {name[-8:] for (name,) in cursor.fetchall() if name[-8:].isdecimal()}
    return {day for day in found if day >= f"{moment - timedelta(days=1):%Y%m%d}"}
