"""Paginates lists, and expands objects. (Reference: "Pagination", "Expanding Responses")

If a request has a `limit`, the peer returns a random number of rows, up to the limit. The caller must therefore
read `has_more` to find out whether there are more rows.
"""

from typing import Any

from tests.payments.stripe_peer.books import Answer, Book, Call, Thing
from tests.payments.stripe_peer.errors import Refusal

_COMPARED = {
    "gt": lambda created, bound: created > bound,
    "gte": lambda created, bound: created >= bound,
    "lt": lambda created, bound: created < bound,
    "lte": lambda created, bound: created <= bound,
}
_PAGING = frozenset({"limit", "starting_after", "ending_before", "expand", "created"})
EVENT_SECONDS = 30 * 86400  # older events are not listed ("List all events")
MAX_TYPES = 20
MAX_EXPANDED = 4  # levels ("Expanding Responses")


def list_endpoint(kind: str, path: str) -> Answer:
    """Return an endpoint that lists the objects of a kind: one page, filtered, newest first."""

    def answer(call: Call) -> Thing:
        rows = [row for row in call.book.all(kind) if _matches(row, call.parameters)]
        if kind == "event":
            rows = _listed(rows, call)
        page, has_more = _page(rows, call)
        return {"object": "list", "url": path, "has_more": has_more, "data": page}

    return answer


def read_endpoint(kind: str) -> Answer:
    """Return an endpoint that reads one object of a kind by its id."""
    return lambda call: call.book.find(kind, call.id, "intent" if kind == "payment_intent" else "id")


def _listed(events: list[Thing], call: Call) -> list[Thing]:
    """Return the events that are new enough to be listed. (Reference: "List all events")"""
    parameters = call.parameters
    if len(parameters.get("types", [])) > MAX_TYPES or {"type", "types"} <= parameters.keys():
        message = f"You may pass either type or types, and at most {MAX_TYPES} types."
        raise Refusal(message, param="types")
    return [row for row in events if row["created"] > call.peer.now() - EVENT_SECONDS]


def _matches(row: Thing, parameters: Thing) -> bool:
    created = parameters.get("created")
    if isinstance(created, int):
        created = {"gte": created, "lte": created}
    if not all(_COMPARED[name](row["created"], bound) for name, bound in (created or {}).items()):
        return False
    filters = {name: value for name, value in parameters.items() if name not in _PAGING}
    return all(_fits(row, name, value) for name, value in filters.items())


def _fits(row: Thing, name: str, value: Any) -> bool:
    if name == "payout":
        return bool(row["_payout"] == value)
    if name == "types":
        return row["type"] in value
    if name == "type" and row["object"] == "event" and value.endswith("*"):
        return bool(row["type"].startswith(value[:-1]))
    if name == "delivery_success":
        return bool((row["pending_webhooks"] == 0) == value)
    return bool(row.get(name) == value)


def _page(rows: list[Thing], call: Call) -> tuple[list[Thing], bool]:
    limit = call.parameters.get("limit", 10)
    if not 1 <= limit <= 100:
        raise Refusal("Invalid limit: it can range between 1 and 100.", "parameter_invalid_integer", "limit")
    if {"starting_after", "ending_before"} <= call.parameters.keys():
        raise Refusal("You may only specify one of these parameters: starting_after, ending_before.")
    if "limit" in call.parameters:
        limit = call.peer.chance.randint(1, max(1, min(limit, len(rows))))
    ids = [row["id"] for row in rows]
    if after := call.parameters.get("starting_after"):
        rows = rows[_position(ids, after, "starting_after") + 1 :]
    if before := call.parameters.get("ending_before"):
        rows = rows[: _position(ids, before, "ending_before")]
        return rows[-limit:], len(rows) > limit
    return rows[:limit], len(rows) > limit


def _position(ids: list[str], object_id: str, param: str) -> int:
    if object_id not in ids:
        raise Refusal(f"No such object: '{object_id}'", "resource_missing", param)
    return ids.index(object_id)


def expand(book: Book, node: Thing, paths: list[str]) -> Thing:
    """At each path, such as `data.latest_charge`, replace the id by the object that it names."""
    for path in paths:
        if path.count(".") >= MAX_EXPANDED:
            raise Refusal(f"You cannot expand more than {MAX_EXPANDED} levels: {path}", param="expand")
        node = _expanded(book, node, path.split("."), path)
    return node


def _expanded(book: Book, node: Any, names: list[str], path: str) -> Any:
    if isinstance(node, list):
        return [_expanded(book, item, names, path) for item in node]
    if not names or node is None:
        return node
    name, *rest = names
    if name not in node:
        raise Refusal(f"This property cannot be expanded ({path}).", param="expand")
    value = node[name]
    if isinstance(value, str):
        value = book.by_id(value)
        if value is None:
            raise Refusal(f"This property cannot be expanded ({path}).", param="expand")
    return node | {name: _expanded(book, value, rest, path)}
