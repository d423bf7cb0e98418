"""The page for API keys. People create, rotate and revoke keys there. Each secret is shown once."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
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
from portal.models import ApiClient, Membership
from portal.pages import Question

TOO_MANY_KEYS = (
    f"There are {keys.MAX_KEYS} keys, which is the maximum. First revoke a key that you no longer use."
)
MAX_REVOKED = 50  # the maximum number of revoked keys on the page; the latest come first


class KeyForm(forms.Form):
    """The form for a new key: its name, which only people see, and its scopes."""

    name = forms.CharField(
        max_length=60, error_messages={"required": "Give it a name, such as “Shop backend”."}
    )
    scopes = forms.MultipleChoiceField(
        choices=list(settings.SCOPES.items()), error_messages={"required": "Choose at least one scope."}
    )


@requires("view")
def list_keys(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the keys, their scopes and their last use.

    With `for=laptop` in the query, the form is filled in for a key that is used on a laptop.
    """
    more: dict[str, Any] = {}
    if request.GET.get("for") == "laptop":
        more = {"name": "My laptop", "scopes": _scope_choices(membership, {"webhooks:read"})}
    return _show_keys(request, membership, **more)


def _show_keys(request: HttpRequest, membership: Membership, **more: Any) -> HttpResponse:
    rows = ApiClient.objects.filter(merchant=membership.merchant)
    clients = list(rows.filter(revoked_at=None).select_related("holder").order_by("created"))
    grantable = keys.grantable_scopes(membership.role)
    context: dict[str, Any] = {
        "made": _take_secret(request, membership, clients),
        "clients": clients,
        "changeable": {client.pk for client in clients if grantable.issuperset(client.scopes.split())},
        "revoked": rows.exclude(revoked_at=None).order_by("-revoked_at")[:MAX_REVOKED],
        "scopes": _scope_choices(membership, settings.SCOPES.keys() - settings.PERSONAL_SCOPES),
        "base_url": settings.BASE_URL,
    }
    return pages.show_page(request, membership, "portal/keys.html", context | more, here="portal_keys")


def _show_secret_once(request: HttpRequest, membership: Membership, new_client: NewClient) -> HttpResponse:
    """Redirect to the page of keys, which shows the secret once."""
    _store_secret(request, membership, new_client)
    return redirect("portal_keys")


def _store_secret(request: HttpRequest, membership: Membership, new_client: NewClient) -> None:
    pages.store_secret(request, membership, "key", f"{new_client.client.pk} {new_client.client_secret}")


def _take_secret(request: HttpRequest, membership: Membership, clients: list[ApiClient]) -> NewClient | None:
    key, _, secret = pages.take_secret(request, membership, "key").partition(" ")
    client = next((client for client in clients if str(client.pk) == key), None)
    return NewClient(client, secret) if client else None


@requires("change_keys", sensitive=True, form_of="portal_keys")
def create(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Create a key, and show its secret once."""
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _show_errors(request, membership, form)
    try:
        with transaction.atomic(durable=True):
            new_client = keys.create(membership, form.cleaned_data["name"], form.cleaned_data["scopes"])
            _record_action(request, membership, "key_created", new_client.client)
    except keys.ScopeNotAllowed as refusal:
        form.add_error("scopes", f"{_roles_of(refusal)} may make a key with these scopes. Ask one of them.")
        return _show_errors(request, membership, form)
    except keys.TooManyKeys:
        form.add_error("name", TOO_MANY_KEYS)
        return _show_errors(request, membership, form)
    return _show_secret_once(request, membership, new_client)


def _roles_of(refusal: keys.ScopeNotAllowed) -> str:
    """Return the start of a sentence that names the roles that may take the refused action."""
    return f"Only an {' or '.join(role.label.lower() for role in refusal.roles)}"


def _record_action(request: HttpRequest, membership: Membership, action: str, client: ApiClient) -> None:
    audit.record(request, membership, action, name=client.name, client_id=client.client_id)


def _show_errors(request: HttpRequest, membership: Membership, form: KeyForm) -> HttpResponse:
    scopes = _scope_choices(membership, request.POST.getlist("scopes"))
    return _show_keys(
        request, membership, errors=pages.first_errors(form), name=request.POST.get("name", ""), scopes=scopes
    )


def _scope_choices(membership: Membership, chosen: Collection[str]) -> list[dict[str, Any]]:
    """Return the scopes that the person may give a key. `is_on` is true for the chosen ones."""
    grantable = keys.grantable_scopes(membership.role)
    return [
        {"name": name, "words": words, "is_on": name in chosen}
        for name, words in settings.SCOPES.items()
        if name in grantable
    ]


@contextmanager
def _report_refusals(request: HttpRequest) -> Iterator[None]:
    """If the block raises a refusal, report it on the next page. Raise Http404 for an unknown key."""
    try:
        with access.or_404(), transaction.atomic(durable=True):
            yield
    except keys.ScopeNotAllowed as refusal:
        pages.report_refusal(request, f"{_roles_of(refusal)} may change a key with these scopes.")
    except keys.StillRotating:
        pages.report_refusal(request, "This key has two secrets already. Stop the old one first.")


@requires("change_keys", sensitive=True)
def rotate(request: HttpRequest, membership: Membership, client_uuid: UUID) -> HttpResponse:
    """Ask the person to confirm, then give a key a second secret. The old secret stays valid until it is stopped."""
    if request.method != "POST":
        return _ask_about_key(request, membership, client_uuid, _rotate_question)
    with _report_refusals(request):
        new_client = keys.rotate(membership, client_uuid)
        _record_action(request, membership, "key_rotated", new_client.client)
        _store_secret(request, membership, new_client)
    return redirect("portal_keys")


@requires("change_keys", sensitive=True)
def stop_previous(request: HttpRequest, membership: Membership, client_uuid: UUID) -> HttpResponse:
    """Ask the person to confirm, then stop a key's old secret."""
    if request.method != "POST":
        return _ask_about_key(request, membership, client_uuid, _stop_question)
    with _report_refusals(request):
        client = keys.stop_previous(membership, client_uuid)
        _record_action(request, membership, "key_secret_stopped", client)
        messages.success(request, f"The old secret of “{client.name}” no longer works.")
    return redirect("portal_keys")


@requires("change_keys", sensitive=True)
def revoke(request: HttpRequest, membership: Membership, client_uuid: UUID) -> HttpResponse:
    """Ask the person to confirm, then revoke a key and its tokens."""
    if request.method != "POST":
        return _ask_about_key(request, membership, client_uuid, _revoke_question)
    with _report_refusals(request):
        client = keys.revoke(membership, client_uuid)
        _record_action(request, membership, "key_revoked", client)
        messages.success(request, f"“{client.name}” is revoked. Its calls are refused from now on.")
    return redirect("portal_keys")


def _ask_about_key(
    request: HttpRequest, membership: Membership, client_uuid: UUID, ask: Callable[[ApiClient], Question]
) -> HttpResponse:
    """Return the page with a question about a key. Raises Http404 for an unknown key."""
    with access.or_404():
        client = ApiClient.objects.get(merchant=membership.merchant, pk=client_uuid, revoked_at=None)
    return pages.ask_question(request, membership, ask(client), here="portal_keys")


def _rotate_question(client: ApiClient) -> Question:
    text = (
        "You get a new secret, which is shown once. The old secret keeps working until you stop it. A rotation cannot"
        " be undone."
    )
    return Question("Keys", f"Rotate “{client.name}”?", text, "Rotate it now")


def _stop_question(client: ApiClient) -> Question:
    text = "Every call with the old secret is refused from that moment. An old secret cannot be restored."
    return Question("Keys", f"Stop the old secret of “{client.name}”?", text, "Stop it now")


def _revoke_question(client: ApiClient) -> Question:
    text = "Every call with this key is refused from that moment. A revoked key cannot be restored."
    return Question("Keys", f"Revoke “{client.name}”?", text, "Revoke it now")
