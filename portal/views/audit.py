"""The page of the audit log: who did what, when, from where, in which request."""

from collections.abc import Sequence
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
def listed(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the audit log, newest first."""
    form = Filters(request.GET or None)
    rows = _entries(membership.merchant, lists.asked(form))
    return lists.show(request, membership, Listing("audit", form, rows, _shown))


def _entries(merchant: Merchant, asked: dict[str, Any]) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(merchant=merchant).select_related("user", "client")
    if asked.get("action"):
        rows = rows.filter(action=asked["action"])
    if asked.get("person"):
        name = asked["person"]
        rows = rows.filter(Q(user__email__icontains=name) | Q(client__name__icontains=name))
    if asked.get("q"):
        rows = rows.filter(request_id=asked["q"])
    return search.of_days(rows, merchant, asked)


def _shown(found: Sequence[AuditEntry]) -> dict[str, Any]:
    return {"rows": [_line(entry) for entry in found]}


def _line(entry: AuditEntry) -> dict[str, Any]:
    return {
        "entry": entry,
        "words": audit.ACTIONS.get(entry.action, entry.action),
        "told": audit_words.told(entry),
        "short_id": lists.cut(entry.request_id),
    }
