"""The webhooks page: the endpoint, its signing secrets, and a test event with its response."""

import functools
import itertools
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from config.lib.bulkhead import Busy
from payments.models import Merchant
from portal import access, audit, badges, pages
from portal.access import requires
from portal.dashboard import charts
from portal.deliveries import log
from portal.models import Membership
from portal.orders import search
from portal.pages import Question
from webhooks import endpoint_tests, health, lookup, receivers, subscriptions, url_check
from webhooks.models import Delivery, EventType, Subscription
from webhooks.targets import TargetRefused
from webhooks.url_check import CheckedUrl, TooManyChecks

MAX_ADDRESS = 2048
TYPE_DESCRIPTIONS: dict[str, str] = {
    EventType.AUTHORIZED: "A customer has paid and the money is held. Capture within 2 minutes.",
    EventType.VOIDED: "A hold was released, because you cancelled the order or the hold lapsed.",
    EventType.OPTED_IN: "A customer ticked your opt-in box. The event contains personal data.",
}
REFUSALS: dict[type[Exception], str] = {
    TooManyChecks: "Too many addresses in a minute. Try again in a minute.",
    Busy: "We are checking other addresses just now. Save again in a moment.",
    subscriptions.SubscriptionNotFound: "Save an endpoint first: the test event needs somewhere to go.",
    endpoint_tests.TooManyTests: "Too many test events in an hour. Try again in an hour.",
}
HERE = "portal_webhooks"
# An example receiver contains a function that checks a signature. These patterns match the first line and the
# other lines of this function.
CHECKS = re.compile(r"(def|func|function) verify\(")
FUNCTION_BODY = re.compile(r"$|\s|\{")
FUNCTION_ENDS = ("}", "end")  # a Python function has no such line
END_QUESTION = Question(
    "Webhooks",
    "Remove the endpoint?",
    "Your server then gets no events. A hold lapses if it is not captured in time. Waiting deliveries are parked. "
    "A new endpoint gets a new secret.",
    "Remove it now",
)
ROTATE_QUESTION = Question(
    "Webhooks",
    "Rotate the signing secret?",
    "You get a new secret, which is shown once. The current secret keeps signing for two hours. Give your "
    "server the new one by then. A rotation cannot be undone.",
    "Rotate it now",
)
REVOKE_QUESTION = Question(
    "Webhooks",
    "Stop every old secret now?",
    "From that moment only the newest secret signs. If your server does not have it yet, deliveries fail until it has "
    "it. An old secret cannot be restored.",
    "Stop it now",
)
# The example receivers. Each value of `code` in the URL has a file and a language.
RECEIVERS = {
    "python": ("receiver.py", "Python"),
    "node": ("receiver.mjs", "Node"),
    "typescript": ("receiver.ts", "TypeScript"),
    "php": ("receiver.php", "PHP"),
    "go": ("receiver.go", "Go"),
    "ruby": ("receiver.rb", "Ruby"),
}


class InvalidEndpoint(Exception):
    """Raised if the form's values are not a valid endpoint. `errors` has the reason for each invalid field."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(*errors.values())
        self.errors = errors


@requires("view")
def show_webhooks(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the endpoint, its health, its secrets, a test event, and example code that checks a signature."""
    if pages.is_part_requested(request, "answer"):
        return pages.show_page(
            request, membership, "portal/_test_answered.html", _test_result(request, membership)
        )
    return _show_page(request, membership)


def _show_page(request: HttpRequest, membership: Membership, **more: Any) -> HttpResponse:
    # The test event is read before the endpoint's figures, so that the figures include the response to it.
    test = _test_context(request, membership)
    subscription = _subscription_of(membership)
    context = {
        "subscription": subscription,
        "new_secret": pages.take_secret(request, membership, "signing"),
        "takes_loopback": settings.WEBHOOK_LOOPBACK,
        **_endpoint_context(subscription),
        **_receiver_context(request),
        **test,
        **more,
    }
    return pages.show_page(request, membership, "portal/webhooks.html", context, here=HERE)


def _endpoint_context(subscription: Subscription | None) -> dict[str, Any]:
    if subscription is None:
        return {
            "url": "",
            "types": _type_choices(TYPE_DESCRIPTIONS),
            "health": None,
            "success": "",
            "answered": 0,
            "until": [],
            "may_rotate": True,
        }
    figures = health.read_health(subscription)
    until = subscriptions.previous_secret_expiries(subscription)
    chosen = TYPE_DESCRIPTIONS if "*" in subscription.event_types else subscription.event_types
    return {
        "url": subscription.url,
        "types": _type_choices(chosen),
        "health": figures,
        "success": charts.percent(figures.success_rate),
        "answered": round((figures.success_rate or 0) * figures.attempts),
        "until": until,
        "may_rotate": len(until) + 1 < subscriptions.MAX_SIGNING,
    }


def _type_choices(chosen: Collection[str]) -> list[dict[str, Any]]:
    """Return all event types. `is_on` is true for the chosen ones."""
    return [
        {"name": name, "words": words, "is_on": name in chosen} for name, words in TYPE_DESCRIPTIONS.items()
    ]


def _test_result(request: HttpRequest, membership: Membership) -> dict[str, Any]:
    """Return the context for the test event that the URL names, and the endpoint's health.

    The health includes the response to the test event.
    """
    test = _test_context(request, membership)
    return test if test["is_waiting"] else _endpoint_context(_subscription_of(membership)) | test


def _receiver_context(request: HttpRequest) -> dict[str, Any]:
    """Return the code of the example receiver in the language that the URL names, and the other languages."""
    code = request.GET.get("code", "")
    receiver = code if code in RECEIVERS else "python"
    name, _ = RECEIVERS[receiver]
    languages = [(language, words) for language, (_, words) in RECEIVERS.items()]
    return {
        "receivers": languages,
        "receiver": receiver,
        "receiver_file": name,
        "checking": _checking_function(name),
    }


@functools.cache
def _checking_function(name: str) -> str:
    """Return the source code of the function that checks a signature, from an example receiver's file."""
    lines = (Path(receivers.__file__).parent / name).read_text().splitlines()
    start = next(index for index, line in enumerate(lines) if CHECKS.match(line))
    body = list(itertools.takewhile(FUNCTION_BODY.match, lines[start + 1 :]))
    end = lines[start + 1 + len(body)]
    return "\n".join([lines[start], *body, end if end in FUNCTION_ENDS else ""]).rstrip()


def _subscription_of(membership: Membership) -> Subscription | None:
    try:
        return subscriptions.read_subscription(membership.merchant)
    except subscriptions.SubscriptionNotFound:
        return None


def _test_context(request: HttpRequest, membership: Membership) -> dict[str, Any]:
    """Return the test event that the URL names, with its response. If there is none, `test` is None."""
    event_uuid = search.parse_uuid(request.GET.get("tested", ""))
    rows = lookup.deliveries_of([event_uuid] if event_uuid else [])
    delivery = rows.filter(merchant=membership.merchant, event_type=EventType.TEST).first()
    if delivery is None:
        return {"test": None, "is_waiting": False}
    details = log.delivery_details(membership.merchant, delivery)
    is_waiting = delivery.status == Delivery.Status.PENDING
    badge = badges.FAILED if delivery.status == Delivery.Status.PARKED else details.badge  # no retries
    return {"test": details, "badge": badge, "is_waiting": is_waiting, "tested": event_uuid}


@requires("change_webhooks", sensitive=True, form_of="portal_webhooks")
def save(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Register the endpoint, or change its address or its event types."""
    url = request.POST.get("url", "").strip()[: MAX_ADDRESS + 1]
    chosen = [name for name in request.POST.getlist("event_types") if name in TYPE_DESCRIPTIONS]
    try:
        secret = _save_endpoint(request, membership, url, chosen)
    except InvalidEndpoint as refusal:
        return _show_page(request, membership, url=url, types=_type_choices(chosen), errors=refusal.errors)
    if secret:
        pages.store_secret(request, membership, "signing", secret)
    else:
        messages.success(request, "Saved. The next delivery goes to this address.")
    return redirect("portal_webhooks")


def _save_endpoint(request: HttpRequest, membership: Membership, url: str, chosen: Sequence[str]) -> str:
    """Save the endpoint. Return the secret of a new endpoint, or "" for an existing one. Raises InvalidEndpoint."""
    checked = _check_endpoint_url(membership.merchant, url, chosen)
    with transaction.atomic(durable=True):
        # The check of the URL can take seconds. The person's role might have changed during that time.
        access.recheck(membership, "change_webhooks")
        is_approved = access.may(membership, "approve_endpoint")
        registered = subscriptions.save_subscription(
            membership.merchant, url=checked, event_types=_subscribed_types(chosen), is_approved=is_approved
        )
        if registered.is_changed:
            facts = subscriptions.audit_facts(registered.subscription)
            audit.record(request, membership, "subscription_saved", **facts)
    return registered.signing_secret or ""


def _check_endpoint_url(merchant: Merchant, url: str, chosen: Sequence[str]) -> CheckedUrl:
    errors = {}
    if len(url) > MAX_ADDRESS or not url:
        errors["url"] = "Write the address of your endpoint, such as https://shop.example/hooks."
    if not chosen:
        errors["types"] = "Choose at least one event."
    if errors:
        raise InvalidEndpoint(errors)
    try:
        return url_check.check_merchant_url(merchant, url)
    except (TargetRefused, TooManyChecks, Busy) as refusal:
        message = REFUSALS.get(type(refusal)) or str(refusal)
        # The messages say "URL", but this page calls it an address.
        raise InvalidEndpoint({"url": message.replace("The URL", "The address")}) from refusal


def _subscribed_types(chosen: Sequence[str]) -> list[str]:
    """Return the event types to subscribe to. If all are chosen, return `*`, which also includes future types."""
    return ["*"] if len(chosen) == len(TYPE_DESCRIPTIONS) else list(chosen)


@requires("approve_endpoint", sensitive=True, form_of="portal_webhooks")
def approve(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Approve the endpoint's URL for personal data. Deliveries that waited for this approval become due."""
    with suppress(subscriptions.SubscriptionNotFound), transaction.atomic(durable=True):
        access.recheck(membership, "approve_endpoint")
        url = subscriptions.approve(membership.merchant, request.POST.get("url", ""))
        if url:
            audit.record(request, membership, "endpoint_approved", url=url)
            messages.success(request, "Approved. Personal data goes to this address from now on.")
        else:
            pages.report_refusal(
                request, "The address has changed since the page was opened. Check the new one."
            )
    return redirect("portal_webhooks")


@requires("change_webhooks", sensitive=True)
def end(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Ask the person to confirm, then end the subscription and park the deliveries that wait."""
    if request.method != "POST":
        return pages.ask_question(request, membership, END_QUESTION, here=HERE)
    with suppress(subscriptions.SubscriptionNotFound), transaction.atomic(durable=True):
        access.recheck(membership, "change_webhooks")
        subscriptions.end(membership.merchant)
        audit.record(request, membership, "subscription_ended")
        messages.success(request, "Removed. The deliveries that waited for the endpoint are parked.")
    return redirect("portal_webhooks")


@requires("change_webhooks", sensitive=True)
def rotate(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Ask the person to confirm, then make a new secret. The page shows it once.

    Each earlier secret continues to sign until its two hours are over.
    """
    if request.method != "POST":
        return pages.ask_question(request, membership, ROTATE_QUESTION, here=HERE)
    _rotate_secret(request, membership)
    return redirect("portal_webhooks")


def _rotate_secret(request: HttpRequest, membership: Membership) -> None:
    try:
        with transaction.atomic(durable=True):
            access.recheck(membership, "change_webhooks")
            rotated = subscriptions.rotate(membership.merchant)
            audit.record(request, membership, "secret_rotated")
    except subscriptions.RotationInProgress:
        pages.report_refusal(
            request, "Three secrets sign already. Wait until one ends, or stop the old ones first."
        )
    except subscriptions.SubscriptionNotFound:
        pass
    else:
        pages.store_secret(request, membership, "signing", rotated.signing_secret)


@requires("change_webhooks", sensitive=True)
def revoke(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Ask the person to confirm, then stop the old secrets from signing."""
    if request.method != "POST":
        return pages.ask_question(request, membership, REVOKE_QUESTION, here=HERE)
    with suppress(subscriptions.SubscriptionNotFound), transaction.atomic(durable=True):
        access.recheck(membership, "change_webhooks")
        if subscriptions.revoke_previous(membership.merchant):
            audit.record(request, membership, "secret_revoked")
            messages.success(request, "Only the new secret signs now.")
    return redirect("portal_webhooks")


@requires("change_webhooks", form_of="portal_webhooks")
def send_test(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Send a test event. The page then shows the response."""
    try:
        with transaction.atomic(durable=True):
            event = endpoint_tests.send_test_event(membership.merchant)
            audit.record(request, membership, "test_event_sent", event=str(event.pk))
    except (subscriptions.SubscriptionNotFound, endpoint_tests.TooManyTests) as refusal:
        pages.report_refusal(request, REFUSALS[type(refusal)])
        return redirect("portal_webhooks")
    return redirect(f"{reverse('portal_webhooks')}?tested={event.pk}#test")
