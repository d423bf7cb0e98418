"""The page of the audit log. It shows each entry's action, person, time, address and request."""

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
    """The list's filters, all of them optional."""

    action = forms.ChoiceField(
        required=False, choices=[("", "Any"), *sorted(audit.ACTIONS.items(), key=lambda action: action[1])]
    )
    person = forms.CharField(required=False, max_length=254)
    q = forms.CharField(required=False, max_length=64)


@requires("read_audit")
@replica.readable
def show_audit_log(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the audit log, newest first."""
    form = Filters(request.GET or None)
    rows = _matching_entries(membership.merchant, lists.filter_values(form))
    # If a person filters by an action, each login has its own line.
    context = (
        _separate_lines
        if form.is_bound and form.is_valid() and form.cleaned_data["action"]
        else _combined_lines
    )
    return lists.show_list(request, membership, Listing("audit", form, rows, context))


def _matching_entries(merchant: Merchant, filters: dict[str, Any]) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(merchant=merchant).select_related("user", "client")
    if filters.get("action"):
        rows = rows.filter(action=filters["action"])
    if filters.get("person"):
        name = filters["person"]
        rows = rows.filter(Q(user__email__icontains=name) | Q(client__name__icontains=name))
    if filters.get("q"):
        rows = rows.filter(request_id=filters["q"])
    return search.filter_by_days(rows, merchant, filters)


def _separate_lines(entries: Sequence[AuditEntry]) -> dict[str, Any]:
    return {"rows": [_audit_line(entry) for entry in entries]}


def _combined_lines(entries: Sequence[AuditEntry]) -> dict[str, Any]:
    """Return the page's lines. Consecutive logins of a person from the same address and browser share a line."""
    rows = []
    for login_key, group in groupby(entries, key=_login_key):
        group_entries = list(group)
        rows += (
            [_audit_line(group_entries[0], group_entries)]
            if login_key
            else [_audit_line(entry) for entry in group_entries]
        )
    return {"rows": rows}


def _login_key(entry: AuditEntry) -> tuple[str, ...] | None:
    if entry.action != "logged_in":
        return None
    return (entry.actor_name, str(entry.address), audit_words.facts_in_words(entry))


def _audit_line(entry: AuditEntry, logins: Sequence[AuditEntry] = ()) -> dict[str, Any]:
    facts = audit_words.facts_in_words(entry)
    return {
        "entry": entry,
        "person": entry.user.email if entry.user and not entry.is_operators else "",
        "times": len(logins) if len(logins) > 1 else 0,
        "first_at": logins[-1].created_at if logins else None,
        "words": audit.ACTIONS.get(entry.action, entry.action),
        "facts": facts,
        "short_facts": lists.shorten_ids(facts),
        "short_id": lists.shorten_ids(entry.request_id),
    }
