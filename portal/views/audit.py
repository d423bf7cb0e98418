"""The page of the audit log: who did what, when, from where, in which request."""

from django import forms
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from config.lib import cursor
from portal import audit, pages
from portal.access import requires
from portal.models import AuditEntry, Membership
from portal.orders import search

PER_PAGE = 50


class Filters(forms.Form):
    """The filters of the list, all of them optional."""

    action = forms.ChoiceField(
        required=False,
        choices=[("", "Any"), *sorted(audit.ACTIONS.items(), key=lambda it: it[1])],
        label="What",
    )
    person = forms.CharField(required=False, max_length=254, label="Who")
    q = forms.CharField(required=False, max_length=64, label="Request id")
    since = forms.DateField(required=False, label="From", validators=[search.in_our_time])
    until = forms.DateField(required=False, label="To", validators=[search.in_our_time])


@requires("read_audit")
def listed(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the audit log, newest first."""
    merchant = membership.merchant
    form = Filters(request.GET or None)
    asked = form.cleaned_data if form.is_bound and form.is_valid() else {}
    rows = AuditEntry.objects.filter(merchant=merchant).select_related("user", "client")
    if asked.get("action"):
        rows = rows.filter(action=asked["action"])
    if asked.get("person"):
        name = asked["person"]
        rows = rows.filter(Q(user__email__icontains=name) | Q(client__name__icontains=name))
    if asked.get("q"):
        rows = rows.filter(request_id=asked["q"])
    since, until = search.span(merchant, asked)
    if since:
        rows = rows.filter(created_at__gte=since)
    if until:
        rows = rows.filter(created_at__lt=until)
    try:
        found, older = cursor.page(
            rows, scope=f"portal-audit:{merchant.pk}", limit=PER_PAGE, cursor=request.GET.get("cursor")
        )
    except cursor.InvalidCursor:
        return redirect("portal_audit")
    context = {
        "form": form,
        "is_filtered": any(asked.values()),
        "rows": [{"entry": entry, "words": audit.ACTIONS.get(entry.action, entry.action)} for entry in found],
        "older": older,
        "is_first": "cursor" not in request.GET,
    }
    template = "portal/_audit.html" if pages.is_asked_for(request, "found") else "portal/audit.html"
    return pages.show(request, membership, template, context, here="portal_audit")
