"""A page of the timeline as people read it: each thing is told once, and a call stands below what it caused.

What the bank did for a state or for a mate's share is said with that, and has no entry of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from portal.orders.entries import Entry
from portal.templatetags.portal import time_of

# By kind: a call has the bank asked, its answer moves the state, and that is told to the merchant.
CAUSES = ("call", "bank", "state", "asks", "attempt", "split")
ASKS_THE_BANK = "asks"  # where the bank is still to be asked, since the state has moved


def cause_first(entry: Entry) -> tuple[datetime, int]:
    """Sort by time; of one moment, what causes comes before what it causes, and else as it was found."""
    is_asked = entry.tone == "move" and entry.kind == "bank"
    return entry.at, CAUSES.index(ASKS_THE_BANK if is_asked else entry.kind)


def told_once(newest_first: Sequence[Entry]) -> Sequence[Entry]:
    """Return a page's entries without those that are parts of others, each call below the state that it moved."""
    oldest_first = list(reversed(newest_first))
    wholes = [entry for entry in oldest_first if entry.key]
    parts: dict[int, list[str]] = {}
    left = []
    for entry in oldest_first:
        whole = _whole_of(entry, wholes)
        if whole is None:
            left.append(entry)
        else:
            parts.setdefault(id(whole), []).append(entry.as_part)
    whole_again = [_with(entry, parts.get(id(entry), [])) for entry in left]
    return _reads_in_one(sorted(_at_their_effect(whole_again), key=cause_first)[::-1])


def _reads_in_one(newest_first: Sequence[Entry]) -> list[Entry]:
    """Return the entries, reads in a row of the same key with the same answer as one, at the time of the last."""
    found: list[Entry] = []
    for key, group in groupby(newest_first, key=read_as):
        same = list(group)
        found += [_read_often(same)] if key and len(same) > 1 else same
    return found


def read_as(entry: Entry) -> tuple[str, str] | None:
    """Return what reads that are told as one have in common, None of what is no read."""
    is_read = entry.kind == "call" and entry.facts.get("method") == "GET"
    return (entry.title, entry.actor) if is_read else None


def _read_often(newest_first: Sequence[Entry]) -> Entry:
    last, first = newest_first[0], newest_first[-1]
    text = f"First at {time_of(first.at)}, last at {time_of(last.at)}."
    return replace(last, title=f"{last.title}, {len(newest_first)} times", text=text)


def _whole_of(entry: Entry, wholes: Sequence[Entry]) -> Entry | None:
    """Return the first entry from then on of which it is a part, None if the page has none."""
    if not entry.part_of:
        return None
    return next((one for one in wholes if one.key == entry.part_of and one.at >= entry.at), None)


def _with(entry: Entry, parts: Sequence[str]) -> Entry:
    return replace(entry, text=" ".join(filter(None, (entry.text, *parts)))) if parts else entry


def _at_their_effect(oldest_first: Sequence[Entry]) -> list[Entry]:
    """Return the entries, each call that moved a state at that time: it was noted when it had been answered."""
    moved: dict[str, Entry] = {}
    for entry in oldest_first:
        if entry.cause:
            moved.setdefault(entry.cause, entry)
    effects = [moved.get(entry.request_id) if entry.kind == "call" else None for entry in oldest_first]
    return [
        replace(entry, at=effect.at) if effect and effect.at < entry.at else entry
        for entry, effect in zip(oldest_first, effects, strict=True)
    ]
