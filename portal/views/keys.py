"""The page of API keys: made, rotated, revoked; a secret is shown once."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal import access, audit, keys, pages
from portal.access import requires
from portal.keys import NewClient
from portal.models import ApiClient, Membership, Role
from portal.pages import Question

MAX_KEYS = 50
MAX_REVOKED = 50  # shown, those revoked last


class KeyForm(forms.Form):
    """A new key's name for people, and its scopes."""

    name = forms.CharField(
        max_length=60, error_messages={"required": "Give it a name, such as “Shop backend”."}
    )
    scopes = forms.MultipleChoiceField(
        choices=list(settings.SCOPES.items()), error_messages={"required": "Choose at least one."}
    )


@requires("view")
def listed(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the keys, what they may do and when they were last used; with `for=laptop` the form is filled in for one."""
    more: dict[str, Any] = {}
    if request.GET.get("for") == "laptop":
        more = {"name": "My laptop", "scopes": _scopes(membership, {"webhooks:read"})}
    return _show(request, membership, **more)


def _show(request: HttpRequest, membership: Membership, **more: Any) -> HttpResponse:
    rows = ApiClient.objects.filter(merchant=membership.merchant)
    clients = list(rows.filter(revoked_at=None).order_by("created"))
    context: dict[str, Any] = {
        "made": _handed_over(request, clients),
        "clients": clients,
        "revoked": rows.exclude(revoked_at=None).order_by("-revoked_at")[:MAX_REVOKED],
        "scopes": _scopes(membership, settings.SCOPES.keys() - settings.PERSONAL_SCOPES),
        "base_url": settings.BASE_URL,
    }
    return pages.show(request, membership, "portal/keys.html", context | more, here="portal_keys")


def _made(request: HttpRequest, made: NewClient) -> HttpResponse:
    """Redirect to the keys, where the secret is shown once."""
    pages.hand_over(request, "key", f"{made.client.pk} {made.client_secret}")
    return redirect("portal_keys")


def _handed_over(request: HttpRequest, clients: list[ApiClient]) -> NewClient | None:
    key, _, secret = pages.handed_over(request, "key").partition(" ")
    client = next((client for client in clients if str(client.pk) == key), None)
    return NewClient(client, secret) if client else None


@requires("change_keys", sensitive=True, form_of="portal_keys")
def create(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make a key, and show its secret once."""
    form = KeyForm(request.POST)
    has_room = ApiClient.objects.filter(merchant=membership.merchant, revoked_at=None).count() < MAX_KEYS
    if not has_room:
        form.add_error("name", "There are 50 keys. Revoke one that you no longer use first.")
    if keys.is_personal(request.POST.getlist("scopes")) and not _may_see_customers(membership):
        form.add_error("scopes", "Only an owner may make a key that reads customers. Ask one of them.")
    if not form.is_valid():
        return _show_errors(request, membership, form)
    with transaction.atomic():
        made = keys.create_client(membership.merchant, form.cleaned_data["name"], form.cleaned_data["scopes"])
        _record(request, membership, "key_created", made.client)
    return _made(request, made)


def _record(request: HttpRequest, membership: Membership, action: str, client: ApiClient) -> None:
    audit.record(request, membership, action, name=client.name, client_id=client.client_id)


def _show_errors(request: HttpRequest, membership: Membership, form: KeyForm) -> HttpResponse:
    scopes = _scopes(membership, request.POST.getlist("scopes"))
    return _show(
        request, membership, errors=pages.errors(form), name=request.POST.get("name", ""), scopes=scopes
    )


def _may_see_customers(membership: Membership) -> bool:
    """Return whether the person may get the secret of a key that reads customers. Rule token.personal."""
    return membership.role == Role.OWNER


def _scopes(membership: Membership, chosen: Collection[str]) -> list[dict[str, Any]]:
    """Return the scopes that the person may give a key, and whether each is chosen."""
    return [
        {"name": name, "words": words, "is_on": name in chosen}
        for name, words in settings.SCOPES.items()
        if _may_see_customers(membership) or not keys.is_personal([name])
    ]


@requires("change_keys", sensitive=True, form_of="portal_keys")
def rotate(request: HttpRequest, membership: Membership, client_uuid: UUID) -> HttpResponse:
    """Give a key a second secret, shown once; the old one stays valid until it is stopped."""
    of_key = ApiClient.objects.filter(merchant=membership.merchant, pk=client_uuid).values_list(
        "scopes", flat=True
    )
    if keys.is_personal(" ".join(of_key).split()) and not _may_see_customers(membership):
        pages.refuse(request, "This key reads customers, so only an owner may rotate it.")
        return redirect("portal_keys")
    try:
        with access.or_404(), transaction.atomic():
            made = keys.rotate(membership.merchant, client_uuid)
            _record(request, membership, "key_rotated", made.client)
    except keys.StillRotating:
        pages.refuse(request, "This key has two secrets already. Stop the old one first.")
        return redirect("portal_keys")
    return _made(request, made)


@requires("change_keys", sensitive=True, form_of="portal_keys")
def stop_previous(request: HttpRequest, membership: Membership, client_uuid: UUID) -> HttpResponse:
    """End a key's old secret."""
    with access.or_404(), transaction.atomic():
        client = keys.stop_previous(membership.merchant, client_uuid)
        _record(request, membership, "key_secret_stopped", client)
    messages.success(request, f"The old secret of “{client.name}” is good no more.")
    return redirect("portal_keys")


@requires("change_keys", sensitive=True)
def revoke(request: HttpRequest, membership: Membership, client_uuid: UUID) -> HttpResponse:
    """Ask whether to end a key and its tokens at once; then do it."""
    if request.method != "POST":
        with access.or_404():
            client = ApiClient.objects.get(merchant=membership.merchant, pk=client_uuid, revoked_at=None)
        return pages.ask(request, membership, _revoking(client), here="portal_keys")
    with access.or_404(), transaction.atomic():
        client = keys.revoke(membership.merchant, client_uuid)
        _record(request, membership, "key_revoked", client)
    messages.success(request, f"“{client.name}” is revoked. Its calls are refused from now on.")
    return redirect("portal_keys")


def _revoking(client: ApiClient) -> Question:
    text = "Every call with this key is refused from that moment, and it does not come back."
    return Question("Keys", f"Revoke “{client.name}”?", text, "Revoke it now")
