"""What PostgreSQL means to read for a query."""

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection


def scans(sql: str) -> Iterator[str]:
    """Yield the tables and indexes that the plan of a query reads from end to end."""
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
