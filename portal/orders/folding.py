"""The timeline's page for people: each fact appears once, and a call is below the change that it caused.

A bank operation that belongs to a change of state or to a mate's share has no separate entry. The entry of
the change or of the share reports it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from portal.orders.entries import Entry
from portal.templatetags.portal import time_of

# The order of entries with the same time. A call makes the service send a request to the bank, the bank's
# response changes the state, and then the merchant is notified.
KIND_ORDER = ("call", "bank", "state", "asks", "attempt", "split")
# In KIND_ORDER, a request to the bank that is still open. A change of state has caused it, so it comes after the
# state.
ASKS_THE_BANK = "asks"


def sort_key(entry: Entry) -> tuple[datetime, int]:
    """Return the sort key: the time, and for equal times causes before their effects."""
    is_asked = entry.tone == "move" and entry.kind == "bank"
    return entry.at, KIND_ORDER.index(ASKS_THE_BANK if is_asked else entry.kind)


def fold_entries(newest_first: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries of a page for people, in which no fact is repeated.

    An entry that is part of another entry on the page is merged into that entry. Repeated reads are combined.
    Each call is below the change of state that it caused.
    """
    oldest_first = list(reversed(newest_first))
    wholes = [entry for entry in oldest_first if entry.key]
    parts: dict[int, list[str]] = {}
    left = []
    for entry in oldest_first:
        whole = _parent_entry(entry, wholes)
        if whole is None:
            left.append(entry)
        else:
            parts.setdefault(id(whole), []).append(entry.as_part)
    whole_again = [_with_parts(entry, parts.get(id(entry), [])) for entry in left]
    return _combine_reads(sorted(_move_calls_to_effects(whole_again), key=sort_key)[::-1])


def _combine_reads(newest_first: Sequence[Entry]) -> list[Entry]:
    """Combine consecutive equal reads by one key into one entry, which has the time of the latest read."""
    found: list[Entry] = []
    for key, group in groupby(newest_first, key=read_as):
        same = list(group)
        found += [_combined_read(same)] if key and len(same) > 1 else same
    return found


def read_as(entry: Entry) -> tuple[str, str] | None:
    """Return the title and actor that combined reads share, or None for an entry that is not a read."""
    is_read = entry.kind == "call" and entry.facts.get("method") == "GET"
    return (entry.title, entry.actor) if is_read else None


def _combined_read(newest_first: Sequence[Entry]) -> Entry:
    last, first = newest_first[0], newest_first[-1]
    text = f"First at {time_of(first.at)}, last at {time_of(last.at)}."
    return replace(last, title=f"{last.title}, {len(newest_first)} times", text=text)


def _parent_entry(entry: Entry, wholes: Sequence[Entry]) -> Entry | None:
    """Return the entry on the page that reports this entry: the first one at or after its time, or None."""
    if not entry.part_of:
        return None
    return next((one for one in wholes if one.key == entry.part_of and one.at >= entry.at), None)


def _with_parts(entry: Entry, parts: Sequence[str]) -> Entry:
    return replace(entry, text=" ".join(filter(None, (entry.text, *parts)))) if parts else entry


def _move_calls_to_effects(oldest_first: Sequence[Entry]) -> list[Entry]:
    """Return the entries, and give each call that changed a state the time of that change.

    A call is recorded after its response, so its recorded time is later.
    """
    moved: dict[str, Entry] = {}
    for entry in oldest_first:
        if entry.cause:
            moved.setdefault(entry.cause, entry)
    effects = [moved.get(entry.request_id) if entry.kind == "call" else None for entry in oldest_first]
    return [
        replace(entry, at=effect.at) if effect and effect.at < entry.at else entry
        for entry, effect in zip(oldest_first, effects, strict=True)
    ]
