"""The frame of every portal page: the merchant, the menu, messages, and secrets that are shown once."""

from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django_htmx.middleware import HtmxDetails

from config.lib import crypto
from config.lib.web import request_id
from payments import operator_stops
from portal import access
from portal.dashboard.merchant_tasks import WaitingItems
from portal.models import Membership

# The menu, in two groups. Each entry has a URL name, a label, and the action that its page requires.
MENU = (
    (
        ("portal_home", "Home", "view"),
        ("portal_checkouts", "Checkouts", "view"),
        ("portal_groups", "Groups", "view"),
        ("portal_refunds", "Refunds", "view"),
        ("portal_balance", "Balance", "view"),
        ("portal_webhooks", "Webhooks", "view"),
        ("portal_deliveries", "Deliveries", "view"),
        ("portal_requests", "Requests", "view"),
        ("portal_keys", "Keys", "view"),
    ),
    (
        ("portal_checklist", "Integration checklist", "view"),
        ("api_docs", "API documentation", "view"),
        ("portal_team", "Team", "view"),
        ("portal_settings", "Settings", "view"),
        ("portal_audit", "Audit log", "read_audit"),
    ),
)


def show_page(
    request: HttpRequest,
    membership: Membership,
    template: str,
    context: dict[str, Any],
    *,
    here: str = "",
    waiting: WaitingItems | None = None,
) -> HttpResponse:
    """Return a page of the portal, with times in the merchant's time zone.

    `here` is the URL name of the current menu entry. The status is 422 if the context has `errors`.
    """
    page_context = frame_context(membership, here, waiting or WaitingItems(membership.merchant)) | context
    status = 422 if page_context.get("errors") else 200
    with timezone.override(membership.merchant.time_zone):
        return render(request, template, page_context, status=status)


def menu_entry_of(path: str) -> str:
    """Return the URL name of the menu entry to which a path belongs, or "" if it belongs to no entry.

    A path belongs to an entry if the entry's page has this path or a path above it. The home page is an
    exception: only its own path belongs to it.
    """
    entry_by_path = {reverse(name): name for group in MENU for name, _, _ in group}
    home = reverse("portal_home")
    entries_above = (
        name
        for entry_path, name in entry_by_path.items()
        if entry_path != home and path.startswith(f"{entry_path}/")
    )
    return entry_by_path.get(path) or next(entries_above, "")


def first_errors(form: Form) -> dict[str, str]:
    """Return the first error of each invalid field, by field name."""
    return {name: str(field_errors[0]) for name, field_errors in form.errors.items()}


def is_part_requested(request: HttpRequest, part: str) -> bool:
    """Return whether htmx requests only the element whose id begins with `part`, not the whole page."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]  # set by its middleware
    return bool(htmx) and (htmx.target or "").startswith(part)


class Question(NamedTuple):
    """A question before an important action: the page heading, the question, the consequences and the button label."""

    heading: str
    title: str
    text: str
    button: str


def ask_question(
    request: HttpRequest, membership: Membership, question: Question, *, here: str
) -> HttpResponse:
    """Return a page with a question that the person must confirm before the view acts.

    If htmx requests only the question, the rest of the page is left out.
    """
    template = "portal/_question.html" if is_part_requested(request, "question") else "portal/question.html"
    context = {"question": question, "address": request.get_full_path(), "back": reverse(here)}
    return show_page(request, membership, template, context, here=here)


def store_secret(request: HttpRequest, membership: Membership, name: str, secret: str) -> None:
    """Store one of the merchant's secrets in the session, so that the page `name` can show it once."""
    request.session[_secret_session_key(membership, name)] = crypto.encrypt(secret)


def take_secret(request: HttpRequest, membership: Membership, name: str) -> str:
    """Return the secret that `store_secret` stored, and remove it from the session. Return "" if there is none."""
    sealed = request.session.pop(_secret_session_key(membership, name), "")
    return crypto.decrypt(sealed) if sealed else ""


def _secret_session_key(membership: Membership, name: str) -> str:
    """Return the session key for a secret that the page `name` shows once.

    The key contains the merchant's id, so that a different merchant's page does not show the secret.
    """
    return f"shown_once_{name}_{membership.merchant_id}"


def report_refusal(request: HttpRequest, sentence: str) -> None:
    """Make the next page show why an action was refused, with the request's id."""
    messages.error(request, sentence, extra_tags=request_id.current_id())


def frame_context(membership: Membership, here: str, waiting: WaitingItems) -> dict[str, Any]:
    """Return the context of the frame: merchant, menu with counts of waiting items, and the person's rights."""
    counts = waiting.menu_counts()
    return {
        "merchant": membership.merchant,
        "membership": membership,
        "menu": [
            [
                {"name": name, "words": words, "is_here": name == here, "waiting": counts.get(name, 0)}
                for name, words, action in group
                if access.may(membership, action)
            ]
            for group in MENU
        ],
        "may": {action: access.may(membership, action) for action in access.ROLES_BY_ACTION},
        "environment": "Sandbox" if settings.SANDBOX else "Live",
        "stopped_since": operator_stops.stopped_since(membership.merchant_id),
        # If payments are stopped although this merchant has no stop of its own, all merchants are stopped.
        "are_all_stopped": membership.merchant_id not in operator_stops.stopped_merchants(),
        "support_email": settings.SUPPORT_EMAIL,
        "zone": membership.merchant.time_zone.rpartition("/")[2].replace("_", " "),
    }
