"""Columns of the admin: times with their seconds, and other rows as links.

Django compares columns, which are functions. The functions below are therefore cached, so that equal
arguments return the same column.
"""

from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html

Column = Callable[[Any], str]
EMPTY_CELL = "–"


def column_name(column: str | Column) -> str:
    """Return the name of a column, or of the field that it shows."""
    return str(getattr(column, "__name__", column))


def row_link(target: Model | None) -> str:
    """Return a link to another row's page in the admin."""
    if target is None:
        return EMPTY_CELL
    if not admin.site.is_registered(type(target)):
        return str(target)
    return format_html('<a href="{}">{}</a>', page_address(target._meta.label_lower, target.pk), target)


def page_address(label: str, key: object) -> str:
    """Return the address of a row's page. `label` is that of its model, such as "checkout.checkout"."""
    return reverse(f"admin:{label.replace('.', '_')}_change", args=[key])


def list_address(label: str, **lookups: object) -> str:
    """Return the address of a model's list, filtered by the lookups."""
    address = reverse(f"admin:{label.replace('.', '_')}_changelist")
    return f"{address}?{urlencode(lookups)}" if lookups else address


def key_link(label: str, key: object) -> str:
    """Return a link to a row's page, which shows the row's key."""
    return format_html('<a href="{}">{}</a>', page_address(label, key), key)


@cache
def link_column(name: str, title: str) -> Column:
    """Return a column that links to the row that a foreign key names."""
    return _name_column(lambda row: row_link(getattr(row, name)), name, title)


@cache
def reference_column(name: str, title: str, label: str) -> Column:
    """Return a column that links to a row by a plain key. The row might not exist."""

    def cell(row: Any) -> str:
        key = getattr(row, name)
        return EMPTY_CELL if key is None else key_link(label, key)

    return _name_column(cell, name, title)


@cache
def time_column(name: str, title: str) -> Column:
    """Return a column that shows a time to the second, in UTC."""

    def cell(row: Any) -> str:
        at = getattr(row, name)
        return EMPTY_CELL if at is None else f"{at.day} {at:%b %Y %H:%M:%S}"

    return _name_column(cell, name, title)


def _name_column(cell: Column, name: str, title: str) -> Column:
    cell.__name__ = name
    return admin.display(description=title)(cell)
