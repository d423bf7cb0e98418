"""The page of the audit log: who did what, when, from where, in which request."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from config.lib.database import replica
from payments.models import Merchant
from portal import audit, audit_words, lists
from portal.access import requires
from portal.lists import Listing
from portal.models import AuditEntry, Membership
from portal.orders import search


class Filters(search.Days):
    """The filters of the list, all of them optional."""

    action = forms.ChoiceField(
        required=False, choices=[("", "Any"), *sorted(audit.ACTIONS.items(), key=lambda it: it[1])]
    )
    person = forms.CharField(required=False, max_length=254)
    q = forms.CharField(required=False, max_length=64)


@requires("read_audit")
@replica.readable
def show_audit_log(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the audit log, newest first."""
    form = Filters(request.GET or None)
    rows = _matching_entries(membership.merchant, lists.filter_values(form))
    # If a person filters by an action, logins are not combined into one line.
    shown = (
        _fields_of_entry if form.is_bound and form.is_valid() and form.cleaned_data["action"] else _page_lines
    )
    return lists.show_list(request, membership, Listing("audit", form, rows, shown))


def _matching_entries(merchant: Merchant, asked: dict[str, Any]) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(merchant=merchant).select_related("user", "client")
    if asked.get("action"):
        rows = rows.filter(action=asked["action"])
    if asked.get("person"):
        name = asked["person"]
        rows = rows.filter(Q(user__email__icontains=name) | Q(client__name__icontains=name))
    if asked.get("q"):
        rows = rows.filter(request_id=asked["q"])
    return search.filter_by_days(rows, merchant, asked)


def _fields_of_entry(found: Sequence[AuditEntry]) -> dict[str, Any]:
    return {"rows": [_audit_line(entry) for entry in found]}


def _page_lines(found: Sequence[AuditEntry]) -> dict[str, Any]:
    """Return the page's lines. Consecutive logins of a person from the same address and browser share one."""
    rows = []
    for is_same, group in groupby(found, key=_logged_in_as):
        same = list(group)
        rows += [_audit_line(same[0], same)] if is_same else [_audit_line(entry) for entry in same]
    return {"rows": rows}


def _logged_in_as(entry: AuditEntry) -> tuple[str, ...] | None:
    if entry.action != "logged_in":
        return None
    return (entry.who, str(entry.address), audit_words.facts_in_words(entry))


def _audit_line(entry: AuditEntry, same: Sequence[AuditEntry] = ()) -> dict[str, Any]:
    told = audit_words.facts_in_words(entry)
    return {
        "entry": entry,
        "person": entry.user.email if entry.user and not entry.is_operators else "",
        "times": len(same) if len(same) > 1 else 0,
        "first_at": same[-1].created_at if same else None,
        "words": audit.ACTIONS.get(entry.action, entry.action),
        "told": told,
        "short_told": lists.shorten_ids(told),
        "short_id": lists.shorten_ids(entry.request_id),
    }
