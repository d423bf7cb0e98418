"""Admin columns: they show values in words, times to the second, and other rows as links.

A column is a function, and Django compares columns. The functions below are cached, so that calls with equal
arguments return the same column.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import display_for_field
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

Column = Callable[[Any], str]
EMPTY_CELL = "–"
AMOUNT_SUFFIX = "_for_people"  # the end of the name of each column of amounts
# Long values that a table shortens: a row's id, a request id that the service has made, and a digest.
_LONG = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=req_)[0-9a-f]{32}|[0-9a-f]{64}")
_LINK_TAG = re.compile(r"</?a\b[^>]*>")
_LINKED = re.compile(r"(?<=>)[0-9a-f]{8}-[0-9a-f-]{27}(?=<)")
_CODE = re.compile(r"<code>([^<]*)</code>")
# `Cause.actor` is the person or process that made a change. For its first part, the admin shows these words.
ACTORS = {"client": "API client", "user": "Person", "customer": "Payer", "pump": "The service"}


def column_name(column: str | Column) -> str:
    """Return the name of a column, or of the field that the column shows."""
    return str(getattr(column, "__name__", column))


def row_link(target: Model | None) -> str:
    """Return a link to another row's page in the admin."""
    if target is None:
        return EMPTY_CELL
    if not admin.site.is_registered(type(target)):
        return str(target)
    return format_html('<a href="{}">{}</a>', page_address(target._meta.label_lower, target.pk), target)


def page_address(label: str, key: object) -> str:
    """Return the address of a row's page. `label` is the model's label, such as "checkout.checkout"."""
    return reverse(f"admin:{label.replace('.', '_')}_change", args=[key])


def list_address(label: str, **lookups: object) -> str:
    """Return the address of a model's list, filtered by the given lookups."""
    address = reverse(f"admin:{label.replace('.', '_')}_changelist")
    return f"{address}?{urlencode(lookups)}" if lookups else address


def key_link(label: str, key: object) -> str:
    """Return a link to a row's page. The text of the link is the row's key."""
    return format_html('<a href="{}"><code>{}</code></a>', page_address(label, key), key)


def actor_in_words(actor: str) -> str:
    """Return who caused a change, such as "API client …c9f5d1". `actor` is the value of `Cause.actor`."""
    kind, _, key = actor.partition(":")
    words = ACTORS.get(kind, kind.capitalize())
    return f"{words} …{key[-6:]}" if key else words or EMPTY_CELL


@cache
def actor_column(name: str, title: str) -> Column:
    """Return a column that shows who caused a change."""
    return _name_column(lambda row: actor_in_words(getattr(row, name) or ""), name, title)


@cache
def field_column(name: str, title: str) -> Column:
    """Return a column that shows a field's value in words: a choice as its label, and a condition as yes or no."""

    def cell(row: Any) -> str:
        value, field = getattr(row, name), row._meta.get_field(name)
        if value in (None, "", []):
            return EMPTY_CELL
        if isinstance(value, bool):
            return "Yes" if value else "No"
        return str(display_for_field(value, field, EMPTY_CELL))

    return _name_column(cell, name, title)


@cache
def words_column(name: str, title: str) -> Column:
    """Return a column that shows a machine word in plain words: "card_account_closed" as "Card account closed"."""
    return _name_column(
        lambda row: str(getattr(row, name)).replace("_", " ").capitalize() or EMPTY_CELL, name, title
    )


@cache
def code_column(name: str, title: str) -> Column:
    """Return a column that shows an id in the monospace font."""

    def cell(row: Any) -> str:
        value = getattr(row, name)
        return EMPTY_CELL if value in (None, "") else format_html("<code>{}</code>", value)

    return _name_column(cell, name, title)


@cache
def link_column(name: str, title: str) -> Column:
    """Return a column that links to the row to which a foreign key refers."""
    return _name_column(lambda row: row_link(getattr(row, name)), name, title)


@cache
def reference_column(name: str, title: str, label: str) -> Column:
    """Return a column that links to a row by a plain key instead of a foreign key. The row might not exist."""

    def cell(row: Any) -> str:
        key = getattr(row, name)
        return EMPTY_CELL if key is None else key_link(label, key)

    return _name_column(cell, name, title)


@cache
def time_column(name: str, title: str) -> Column:
    """Return a column that shows a time to the second, in UTC. The time stays on one line."""

    def cell(row: Any) -> str:
        at = getattr(row, name)
        return (
            EMPTY_CELL
            if at is None
            else format_html('<time datetime="{}">{}</time>', at.isoformat(), time_in_words(at))
        )

    return _name_column(cell, name, title)


def time_in_words(at: datetime) -> str:
    """Return a time to the second, such as "30 Nov 2026 22:00:00"."""
    return f"{at.day} {at:%b %Y %H:%M:%S}"


@cache
def list_column(column: Column, *, is_first: bool) -> Column:
    """Return a column for a list, with long ids shortened in the middle. The first column has no links."""

    def cell(row: Any) -> str:
        return shorten_ids(without_links(column(row)) if is_first else column(row))

    return _name_column(cell, column_name(column), str(getattr(column, "short_description", "")))


def shorten_ids(cell: str) -> str:
    """Return a cell with long ids shortened in the middle. Except in links, `title` has the full text."""
    if isinstance(cell, SafeString):
        cell = SafeString(_CODE.sub(_shorten_code, cell))
        return mark_safe(_LINKED.sub(_shorten, cell))  # noqa: S308  # ids have no markup
    short = _LONG.sub(_shorten, cell)
    return cell if short == cell else format_html('<span title="{}">{}</span>', cell, short)


def _shorten_code(match: re.Match[str]) -> str:
    short = _LONG.sub(_shorten, match[1])
    return match[0] if short == match[1] else f'<code title="{match[1]}">{short}</code>'


def _shorten(match: re.Match[str]) -> str:
    return f"{match[0][:4]}…{match[0][-6:]}"


def without_links(cell: str) -> str:
    """Return a cell without its links, because the whole cell becomes the link to the row's page."""
    return mark_safe(_LINK_TAG.sub("", cell)) if isinstance(cell, SafeString) else cell  # noqa: S308  # only cut


def _name_column(cell: Column, name: str, title: str) -> Column:
    cell.__name__ = name
    return admin.display(description=title)(cell)
