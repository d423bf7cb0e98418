"""Filtered lists in pages: this module reads the values of the filters, and shows a page of rows."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from config.lib import cursor
from portal import pages
from portal.models import Membership

PER_PAGE = 50
# Ids that are too long for people to read: UUIDs, and the request ids that the service generates.
_LONG = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=req_)[0-9a-f]{32}")


@dataclass(frozen=True)
class Listing:
    """A filtered list, sorted by `key` with the newest first.

    `name` is the name of the list's menu entry and templates. `build_context` turns the rows of a page into
    the template's context. `in_steps` is passed to `cursor.read_page`.
    """

    name: str
    form: forms.Form
    rows: QuerySet[Any]
    build_context: Callable[[Sequence[Any]], dict[str, Any]]
    key: str = "created_at"
    in_steps: bool = False


def filter_values(form: forms.Form) -> dict[str, Any]:
    """Return the values of the filters. If there are no filters, or one is invalid, return an empty dictionary."""
    return form.cleaned_data if form.is_bound and form.is_valid() else {}


def shorten_ids(text: str) -> str:
    """Shorten each long id in the text to its first and last four characters."""
    return _LONG.sub(lambda match: f"{match[0][:4]}…{match[0][-4:]}", text)


def show_list(request: HttpRequest, membership: Membership, listing: Listing) -> HttpResponse:
    """Return a page of a list. If the cursor is invalid, redirect to the first page."""
    name = listing.name
    try:
        context = _list_page(request, membership, listing)
    except cursor.InvalidCursor:
        return redirect(f"portal_{name}")
    template = f"portal/_{name}.html" if pages.is_part_requested(request, "found") else f"portal/{name}.html"
    return pages.show_page(request, membership, template, context, here=f"portal_{name}")


def _list_page(request: HttpRequest, membership: Membership, listing: Listing) -> dict[str, Any]:
    rows, older = cursor.read_page(
        listing.rows,
        scope=f"portal-{listing.name}-{listing.key}:{membership.merchant_id}",
        limit=PER_PAGE,
        cursor=request.GET.get("cursor"),
        key=listing.key,
        in_steps=listing.in_steps,
    )
    return {
        "form": listing.form,
        "list_url": reverse(f"portal_{listing.name}"),
        "is_filtered": any(filter_values(listing.form).values()),
        "older": older,
        "is_first": "cursor" not in request.GET,
        "is_of_today": _is_of_today([getattr(row, listing.key) for row in rows], membership),
        **listing.build_context(rows),
    }


def _is_of_today(moments: Iterable[datetime], membership: Membership) -> bool:
    """Return whether all times are on the merchant's current day. The list then does not show dates."""
    zone = ZoneInfo(membership.merchant.time_zone)
    today = timezone.localdate(timezone=zone)
    return all(timezone.localdate(moment, zone) == today for moment in moments)
