"""Template tags for data that the admin's views do not provide: the menu, list rows, and an order's page."""

from collections.abc import Callable, Sequence
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import RequestContext
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from config.lib.admin import titles
from config.lib.web import units
from portal.backoffice import frame, headings, lists, order, overview_figures, records, subjects
from portal.backoffice.record_heads import registry
from portal.backoffice.record_heads.head import Head

register = template.Library()
register.filter("utc", order.format_utc)
register.filter(units.whole_ids)
register.filter("filter_title", lists.filter_title)
register.filter("table_title", frame.table_label)
register.filter("row_noun", titles.row_noun)
register.filter("by_topic", frame.group_by_topic)
# The end of a UUID is shown, because UUIDs from about the same time begin with the same digits.
register.filter("uuid_end", lambda uuid: f"…{str(uuid)[-6:]}")

# For each model whose list has its own table, the function that builds the table's rows.
ROWS: dict[str, Callable[[Sequence[Any], HttpRequest], Sequence[Any]]] = {
    "checkout.checkout": lists.build_order_rows,
    "payments.discrepancy": lists.build_discrepancy_rows,
    "payments.merchant": lists.build_merchant_rows,
    **dict.fromkeys(records.DESCRIPTIONS, records.build_rows),
    "checkout.refund": records.build_refund_rows,
    "payments.payment": records.build_payment_rows,
    "webhooks.event": records.build_event_rows,
}


@register.inclusion_tag("operators/_menu.html", takes_context=True)
def operators_menu(context: dict[str, Any]) -> dict[str, Any]:
    """Show the menu with the numbers of waiting rows. One statement, which reads only open rows, counts them."""
    request = context["request"]
    waiting = overview_figures.count_waiting() if frame.may_see_operations(request) else (0, 0)
    return {"menu": frame.build_menu(request, *waiting), "user": request.user}


@register.inclusion_tag("operators/_about.html")
def operators_about(rows: Sequence[Any]) -> dict[str, Any]:
    """Show the rows that a question is about, each on one line."""
    return {"about": subjects.describe_rows(rows)}


@register.simple_tag(takes_context=True)
def operators_rows(context: RequestContext, changelist: Any) -> Sequence[Any]:
    """Return the rows on the current page of a list, as this operator may see them."""
    return ROWS[changelist.opts.label_lower](list(changelist.result_list), context.request)


@register.simple_tag(takes_context=True)
def operators_heading(context: RequestContext, row: Any) -> str:
    """Return the heading of a row's page in words, or "" for a row that is not saved yet."""
    return headings.heading_of(row, context.request) if row else ""


@register.filter
def heading_words(words: str) -> SafeString:
    """Return a heading as HTML. An e-mail address can break before its @, and an id with a hyphen only if it must."""
    if "@" in words and " " not in words:
        return mark_safe(escape(words).replace("@", "<wbr>@"))  # noqa: S308 - escaped before
    return units.whole_ids(words)


@register.simple_tag(takes_context=True)
def operators_head(context: RequestContext, row: Any) -> Head | None:
    """Return the text at the top of a row's page, or None for a row that is not saved yet."""
    return registry.head_of(row, context.request) if row else None


@register.simple_tag(takes_context=True)
def operators_order(context: dict[str, Any], checkout: Any) -> order.Page:
    """Return the content of an order's page for this operator."""
    return order.Page(checkout, context["request"])


@register.simple_tag
def operators_actions(changelist: Any, choices: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the actions that fit at least one row on this page, each with its index and label.

    If the list has only one action and its label is one word, the noun for the rows is added to the label.
    """
    row_name = titles.row_noun(changelist.opts, 2)
    is_short = len(choices) == 1 and " " not in choices[0][1]
    return [
        {"index": index, "words": f"{words} {row_name}" if is_short else words}
        for index, (action, words) in enumerate(choices)
        if any(changelist.model_admin.offers(action, row) for row in changelist.result_list)
    ]


@register.simple_tag(takes_context=True)
def operators_fits(context: RequestContext, changelist: Any, row: Any) -> str:
    """Return the indexes of the list's actions that fit a row, separated by spaces."""
    actions = changelist.model_admin.get_actions(context.request)
    fits = [index for index, name in enumerate(actions) if changelist.model_admin.offers(name, row)]
    return " ".join(map(str, fits))


@register.filter
def with_labels(cells: Sequence[str], headers: Sequence[dict[str, Any]]) -> list[str]:
    """Return the cells of a row, each with its column name as `data-label`. A checkbox has no such label."""
    names = ["" if "checkbox" in str(header["text"]) else capfirst(str(header["text"])) for header in headers]
    return [
        mark_safe(cell[:3] + format_html(' data-label="{}"', name) + cell[3:])  # noqa: S308  # Django's own cells
        for cell, name in zip(map(str.strip, cells), names, strict=True)
    ]


@register.simple_tag
def operators_choice(spec: Any, choice: Any) -> str:
    """Return the words for a filter's choice. They are the words in the badges of the list."""
    return lists.choice_label(spec, str(choice))


@register.simple_tag
def operators_filters(changelist: Any) -> str:
    """Return the active filters of a list in words."""
    return lists.active_filters(changelist)
