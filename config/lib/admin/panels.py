"""Panels on a row's page in the admin. They show the first related rows, and links to the complete lists."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib.admin.utils import display_for_field, display_for_value, label_for_field, lookup_field
from django.db.models import ForeignKey, Model, QuerySet, Value
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.text import capfirst

from config.lib.admin.columns import (
    AMOUNT_SUFFIX,
    EMPTY_CELL,
    column_name,
    list_address,
    page_address,
    shorten_ids,
    without_links,
)

MAXIMUM = 20  # rows in a panel


@dataclass(frozen=True)
class Panel:
    """A table of the first rows that refer to the page's row. `address` is the address of the complete list.

    `are_amounts` says for each column whether it has amounts, which are right-aligned.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    address: str
    is_cut: bool
    are_amounts: Sequence[bool] = ()

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """The column headers. Each has a flag that says whether its column has amounts."""
        return list(zip(self.headers, self.are_amounts, strict=True))

    @property
    def lines(self) -> list[list[tuple[str, bool, str]]]:
        """The rows. Each cell comes with its column header, because phones hide the row of headers."""
        return [list(zip(self.headers, self.are_amounts, row, strict=True)) for row in self.rows]


class Link(NamedTuple):
    """A link to a list. If the list's rows were counted, the link has their number."""

    title: str
    address: str
    rows: str = ""


def read_panel(model_admin: Any, request: HttpRequest, path: str, row: Model) -> Panel:
    """Return a panel with the rows of `model_admin` whose field `path` refers to this row, oldest first.

    If both models have a merchant, the look-up includes it, because the index can begin with the merchant.
    """
    lookups = {f"{path}__exact": row.pk} | _merchant_lookup(row, model_admin.model)
    rows = list(
        model_admin.get_queryset(request).filter(**lookups).order_by(*model_admin.panel_order)[: MAXIMUM + 1]
    )
    # Hide the columns that would repeat what the page already shows: this row, and the rows to which both this
    # row and the panel's rows refer.
    hidden = {path, *_common_references(type(row), model_admin)}
    columns = [
        column for column in model_admin.get_list_display(request) if column_name(column) not in hidden
    ]
    return Panel(
        title=str(capfirst(model_admin.model._meta.verbose_name_plural)),
        headers=[
            capfirst(str(label_for_field(column, model_admin.model, model_admin))) for column in columns
        ],
        rows=[_write_cells(columns, each, model_admin) for each in rows[:MAXIMUM]],
        address=list_address(model_admin.model._meta.label_lower, **lookups),
        is_cut=len(rows) > MAXIMUM,
        are_amounts=[column_name(column).endswith(AMOUNT_SUFFIX) for column in columns],
    )


def _common_references(model: type[Model], model_admin: Any) -> set[str]:
    """Return the names of the references that a model and the model of a panel have in common."""
    fields = model_admin.model._meta.fields
    names = {field.name for field in fields if isinstance(field, ForeignKey)} | set(
        getattr(model_admin, "references", ())
    )
    return names & {field.name for field in model._meta.fields}


def _merchant_lookup(row: Any, model: type[Model]) -> dict[str, Any]:
    """Return a lookup for the row's merchant if both models have one, else an empty dict."""
    both = _has_merchant(type(row)) and _has_merchant(model)
    return {"merchant__exact": row.merchant_id} if both else {}


def _has_merchant(model: type[Model]) -> bool:
    return any(field.name == "merchant" for field in model._meta.fields)


def _write_cells(columns: Sequence[Any], row: Model, model_admin: Any) -> list[str]:
    first, *others = [shorten_ids(_write_cell(column, row, model_admin)) for column in columns]
    address = page_address(row._meta.label_lower, row.pk)
    return [format_html('<a href="{}">{}</a>', address, without_links(first)), *others]


def _write_cell(column: Any, row: Model, model_admin: Any) -> str:
    field, attribute, value = lookup_field(column, row, model_admin)
    if field is None:
        return display_for_value(value, EMPTY_CELL, boolean=getattr(attribute, "boolean", False))
    return display_for_field(value, field, EMPTY_CELL)


def referring_fields(model: type[Model], model_admin: Any) -> Iterator[str]:
    """Yield the fields through which rows of `model_admin` refer to a model: foreign keys and plain keys.

    Foreign keys in the admin's `unindexed` are left out, because a look-up by them would read a whole table.
    """
    for field in model_admin.model._meta.fields:
        is_indexed = field.name not in getattr(model_admin, "unindexed", ())
        if isinstance(field, ForeignKey) and field.related_model is model and is_indexed:
            yield field.name
    for name, label in getattr(model_admin, "references", {}).items():
        if label == model._meta.label_lower:
            yield name


def other_list_links(
    registered: Sequence[Any],
    request: HttpRequest,
    row: Model,
    drawn: set[tuple[str, str]],
    *,
    is_counted: bool = False,
) -> list[Link]:
    """Return links to the lists of rows that refer to this row. Leave out the lists that are `drawn` as panels.

    If both models have a merchant, the links include it, as in `read_panel`. If the rows are counted, links
    to empty lists are left out. A list by one of the admin's `uncounted` keys is always linked and never
    counted, because the key has no index.
    """
    links: list[Link] = []
    lists: dict[int, QuerySet[Any, Any]] = {}  # the lists to count, by the position of their link
    for model_admin in registered:
        label, title = (
            model_admin.model._meta.label_lower,
            capfirst(model_admin.model._meta.verbose_name_plural),
        )
        names = [name for name in referring_fields(type(row), model_admin) if (label, name) not in drawn]
        if not names or not model_admin.has_view_permission(request):
            continue
        for name in names:
            more = f" ({model_admin.model._meta.get_field(name).verbose_name})" if len(names) > 1 else ""
            lookups = {f"{name}__exact": row.pk} | _merchant_lookup(row, model_admin.model)
            if name not in getattr(model_admin, "uncounted", ()):
                lists[len(links)] = model_admin.model._base_manager.filter(**lookups)
            links.append(Link(f"{title}{more}", list_address(label, **lookups)))
    return sorted(_count_links(links, lists) if is_counted and lists else links)


def _count_links(links: Sequence[Link], lists: Mapping[int, QuerySet[Any, Any]]) -> list[Link]:
    """Return the links to lists that have rows, each with its number of rows, counted up to MAXIMUM.

    One statement counts all lists.
    """
    first, *others = (
        rows.order_by().values_list(Value(place))[: MAXIMUM + 1] for place, rows in lists.items()
    )
    counts = Counter(place for (place,) in first.union(*others, all=True))
    words = {place: f"over {MAXIMUM}" if count > MAXIMUM else str(count) for place, count in counts.items()}
    return [
        link._replace(rows=words.get(place, ""))
        for place, link in enumerate(links)
        if place in words or place not in lists
    ]
