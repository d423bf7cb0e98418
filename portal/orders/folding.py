"""The timeline for people. Each fact appears once, and a call is below the change that it caused.

If a bank operation belongs to a change of state or to a mate's share, it has no separate entry. The entry for
the change or for the share reports it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from portal.orders.entries import Entry
from portal.templatetags.portal import time_of

# The order of entries that have the same time. A call makes the service send a request to the bank, the bank's
# response changes the state, and then the merchant is notified.
KIND_ORDER = ("call", "bank", "state", "open_request", "attempt", "split")
# The place in KIND_ORDER for a request to the bank that is still open. A change of state has caused the
# request, so it comes after the state.
OPEN_REQUEST = "open_request"


def sort_key(entry: Entry) -> tuple[datetime, int]:
    """Return an entry's sort key: its time, and its place in KIND_ORDER, so that causes come before effects."""
    is_open_request = entry.tone == "move" and entry.kind == "bank"
    return entry.at, KIND_ORDER.index(OPEN_REQUEST if is_open_request else entry.kind)


def fold_entries(newest_first: Sequence[Entry]) -> Sequence[Entry]:
    """Merge and sort the entries on a page for people, so that each fact appears once.

    An entry that is a part of another entry on the page is merged into that entry. Repeated reads are
    combined. Each call is below the change of state that it caused.
    """
    oldest_first = list(reversed(newest_first))
    parents = [entry for entry in oldest_first if entry.key]
    parts: dict[int, list[str]] = {}
    remaining = []
    for entry in oldest_first:
        parent = _parent_entry(entry, parents)
        if parent is None:
            remaining.append(entry)
        else:
            parts.setdefault(id(parent), []).append(entry.as_part)
    merged = [_with_parts(entry, parts.get(id(entry), [])) for entry in remaining]
    return _combine_reads(sorted(_move_calls_to_effects(merged), key=sort_key)[::-1])


def _combine_reads(newest_first: Sequence[Entry]) -> list[Entry]:
    """Combine consecutive equal reads by the same API key into one entry, which has the time of the latest read."""
    combined: list[Entry] = []
    for key, group in groupby(newest_first, key=read_key):
        reads = list(group)
        combined += [_combined_read(reads)] if key and len(reads) > 1 else reads
    return combined


def read_key(entry: Entry) -> tuple[str, str] | None:
    """Return the title and the actor of a read call. Reads with the same key are combined. Other entries get None."""
    is_read = entry.kind == "call" and entry.facts.get("method") == "GET"
    return (entry.title, entry.actor) if is_read else None


def _combined_read(newest_first: Sequence[Entry]) -> Entry:
    last, first = newest_first[0], newest_first[-1]
    text = f"First at {time_of(first.at)}, last at {time_of(last.at)}."
    return replace(last, title=f"{last.title}, {len(newest_first)} times", text=text)


def _parent_entry(entry: Entry, parents: Sequence[Entry]) -> Entry | None:
    """Return the entry on the page that includes this entry: the first one at or after its time, or None."""
    if not entry.part_of:
        return None
    return next((parent for parent in parents if parent.key == entry.part_of and parent.at >= entry.at), None)


def _with_parts(entry: Entry, parts: Sequence[str]) -> Entry:
    return replace(entry, text=" ".join(filter(None, (entry.text, *parts)))) if parts else entry


def _move_calls_to_effects(oldest_first: Sequence[Entry]) -> list[Entry]:
    """Give each call that changed a state the time of that change. Return all entries.

    A call is recorded after its response, so its own time is later than the change.
    """
    changes: dict[str, Entry] = {}
    for entry in oldest_first:
        if entry.cause:
            changes.setdefault(entry.cause, entry)
    effects = [changes.get(entry.request_id) if entry.kind == "call" else None for entry in oldest_first]
    return [
        replace(entry, at=effect.at) if effect and effect.at < entry.at else entry
        for entry, effect in zip(oldest_first, effects, strict=True)
    ]
