"""Paginated lists, and expanded objects. (Reference: "Pagination", "Expanding Responses")

If a request has a `limit`, the peer returns a random number of rows up to it. The caller must therefore read
`has_more` to know whether there are more rows.
"""

from typing import Any

from tests.payments.stripe_peer.books import Answer, Book, Call, Thing
from tests.payments.stripe_peer.errors import Refusal

_COMPARED = {
    "gt": lambda at, given: at > given,
    "gte": lambda at, given: at >= given,
    "lt": lambda at, given: at < given,
    "lte": lambda at, given: at <= given,
}
_PAGING = frozenset({"limit", "starting_after", "ending_before", "expand", "created"})
EVENT_SECONDS = 30 * 86400  # older events are not listed ("List all events")
MAX_TYPES = 20
MAX_EXPANDED = 4  # levels ("Expanding Responses")


def of(kind: str, path: str) -> Answer:
    """Return the endpoint that lists the objects of a kind: it returns one filtered page, newest first."""

    def answer(call: Call) -> Thing:
        rows = [row for row in call.book.all(kind) if _matches(row, call.given)]
        if kind == "event":
            rows = _listed(rows, call)
        page, has_more = _page(rows, call)
        return {"object": "list", "url": path, "has_more": has_more, "data": page}

    return answer


def one(kind: str) -> Answer:
    """Return the endpoint that reads one object of a kind by its id."""
    return lambda call: call.book.find(kind, call.id, "intent" if kind == "payment_intent" else "id")


def _listed(events: list[Thing], call: Call) -> list[Thing]:
    """Return the events that are not too old. (Reference: "List all events")"""
    given = call.given
    if len(given.get("types", [])) > MAX_TYPES or {"type", "types"} <= given.keys():
        message = f"You may pass either type or types, and at most {MAX_TYPES} types."
        raise Refusal(message, param="types")
    return [row for row in events if row["created"] > call.peer.now() - EVENT_SECONDS]


def _matches(row: Thing, given: Thing) -> bool:
    created = given.get("created")
    if isinstance(created, int):
        created = {"gte": created, "lte": created}
    if not all(_COMPARED[name](row["created"], at) for name, at in (created or {}).items()):
        return False
    wanted = {name: value for name, value in given.items() if name not in _PAGING}
    return all(_fits(row, name, value) for name, value in wanted.items())


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
    limit = call.given.get("limit", 10)
    if not 1 <= limit <= 100:
        raise Refusal("Invalid limit: it can range between 1 and 100.", "parameter_invalid_integer", "limit")
    if {"starting_after", "ending_before"} <= call.given.keys():
        raise Refusal("You may only specify one of these parameters: starting_after, ending_before.")
    if "limit" in call.given:
        limit = call.peer.chance.randint(1, max(1, min(limit, len(rows))))
    ids = [row["id"] for row in rows]
    if after := call.given.get("starting_after"):
        rows = rows[_position(ids, after, "starting_after") + 1 :]
    if before := call.given.get("ending_before"):
        rows = rows[: _position(ids, before, "ending_before")]
        return rows[-limit:], len(rows) > limit
    return rows[:limit], len(rows) > limit


def _position(ids: list[str], wanted: str, param: str) -> int:
    if wanted not in ids:
        raise Refusal(f"No such object: '{wanted}'", "resource_missing", param)
    return ids.index(wanted)


def expand(book: Book, thing: Thing, paths: list[str]) -> Thing:
    """Replace the id at each path, such as `data.latest_charge`, with the object that it names."""
    for path in paths:
        if path.count(".") >= MAX_EXPANDED:
            raise Refusal(f"You cannot expand more than {MAX_EXPANDED} levels: {path}", param="expand")
        thing = _expanded(book, thing, path.split("."), path)
    return thing


def _expanded(book: Book, thing: Any, names: list[str], path: str) -> Any:
    if isinstance(thing, list):
        return [_expanded(book, row, names, path) for row in thing]
    if not names or thing is None:
        return thing
    name, *rest = names
    if name not in thing:
        raise Refusal(f"This property cannot be expanded ({path}).", param="expand")
    value = thing[name]
    if isinstance(value, str):
        value = book.by_id(value)
        if value is None:
            raise Refusal(f"This property cannot be expanded ({path}).", param="expand")
    return thing | {name: _expanded(book, value, rest, path)}
