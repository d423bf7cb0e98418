"""Admin pages for the webhook models, with the actions that send deliveries again."""

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from config.lib import clock
from config.lib.admin import columns, lists
from config.lib.admin.readonly import ReadOnlyAdmin
from payments.cause import cause_of_operator
from payments.models import Merchant
from webhooks import health, resending, subscriptions
from webhooks.models import (
    PERSONAL,
    Attempt,
    Delivery,
    Endpoint,
    Event,
    SigningSecret,
    Subscription,
)

RECENT_PERIOD = timedelta(hours=24)
LINE_END = SafeString("/<wbr>")


class ResendingAdmin(ReadOnlyAdmin):
    """Admin pages with actions that send deliveries again. A user needs the permission to change deliveries."""

    def has_resend_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("webhooks.change_delivery")

    def show_result(
        self, request: HttpRequest, merchant: Merchant, resent: resending.ResendResult | None
    ) -> None:
        """Show the result of an action that sends deliveries again."""
        if resent is None:
            self.message_user(request, f"{merchant} has no subscription to send to.", messages.ERROR)
            return
        left_out = f" {resent.left_out} cannot be sent again." if resent.left_out else ""
        level = messages.SUCCESS if resent.sent else messages.WARNING
        self.message_user(request, f"{merchant}: {resent.sent} on their way again.{left_out}", level)


@admin.register(Subscription)
class SubscriptionAdmin(ResendingAdmin):
    is_small = True
    list_display = ("url", "merchant", "event_types", "created_at", "ended_at")
    search_fields = ("url", "merchant__name")
    actions = ("resend_parked",)
    extra_columns = ("health",)
    explanations: Mapping[str, str] = {
        "has_deliveries": "Whether a delivery was ever sent to it. It is kept as long as its deliveries."
    }

    def column(self, name: Any) -> Any:
        return self.types if name == "event_types" else super().column(name)

    @admin.display(description="event types")
    def types(self, subscription: Subscription) -> str:
        return "All" if "*" in subscription.event_types else ", ".join(subscription.event_types)

    @admin.display(description="health, last 24 hours")
    def health(self, subscription: Subscription) -> str:
        found = health.read_health(subscription)
        if found.success_rate is None:
            return f"No attempts. {found.parked} parked."
        rate = f"{found.success_rate:.1%} of {found.attempts} attempts were answered 2xx."
        times = f"Half of the answers came in {found.p50_ms or 0:,} ms, 95% in {found.p95_ms or 0:,} ms."
        due = f"Waiting since {found.oldest_due_at:%H:%M:%S}." if found.oldest_due_at else "Nothing is due."
        return f"{rate} {times} {due} {found.parked} parked."

    @admin.action(description="Resend deliveries parked in the last 24 hours", permissions=["resend"])
    def resend_parked(self, request: HttpRequest, rows: QuerySet[Subscription]) -> None:
        for subscription in rows.select_related("merchant"):
            merchant = subscription.merchant
            try:
                resent = resending.resend_parked(
                    merchant, clock.now() - RECENT_PERIOD, cause=cause_of_operator(request)
                )
            except subscriptions.SubscriptionNotFound:
                self.show_result(request, merchant, None)
                continue
            self.log_change(request, subscription, f"Sent parked deliveries again: {resent.sent}.")
            self.show_result(request, merchant, resent)


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("subscription", "last_success_at", "failing_since", "last_error", "hung_in_a_row")
    search_fields = ("subscription__url", "subscription__merchant__name")

    def column(self, name: Any) -> Any:
        columns_in_words = {"subscription": self.address, "last_error": self.current_error}
        return columns_in_words.get(name) or super().column(name)

    @admin.display(description="subscription")
    def address(self, endpoint: Endpoint) -> str:
        """Return a link with the address of the endpoint. A line of it ends after a slash, not in a word."""
        scheme, _, path = endpoint.subscription.url.partition("://")
        parts = format_html_join(LINE_END, "{}", ((part,) for part in path.split("/")))
        page = columns.page_address("webhooks.subscription", endpoint.subscription_id)
        return format_html('<a href="{}">{}://{}</a>', page, scheme, parts)

    @admin.display(description="last error")
    def current_error(self, endpoint: Endpoint) -> str:
        """Return the error of an endpoint that is failing. Without a time, an older error would look current."""
        return endpoint.last_error if endpoint.failing_since else columns.EMPTY_CELL


@admin.register(SigningSecret)
class SigningSecretAdmin(ReadOnlyAdmin):
    is_small = True
    list_display = ("id", "subscription", "created_at", "expires_at")
    secret = ("secret",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Admin pages for events. They show the body that is sent, with indentation.

    If the event contains personal data, the body is hidden.
    """

    list_display = (
        "type",
        "merchant",
        "checkout_uuid",
        "created_at",
        "superseded_at",
        "body_deleted_at",
        "id",
    )
    list_filter = ("type",)
    search_fields = ("id", "checkout_uuid")
    merchants_order = ("-written_at", "-pk")
    references = {"checkout_uuid": "checkout.checkout"}
    panels = (("webhooks.delivery", "event"),)
    secret = ("body",)
    extra_columns = ("sent",)

    @admin.display(description="body")
    def sent(self, event: Event) -> str:
        if event.type in PERSONAL:
            return "The body has personal data and is not shown."
        body = json.dumps(json.loads(event.plain_body), indent=2, ensure_ascii=False)
        return format_html("<pre><code>{}</code></pre>", body)


@admin.register(Delivery)
class DeliveryAdmin(ResendingAdmin):
    list_display = ("id", "event", "merchant", "status", "attempt_count", "next_attempt_at", "ended_at")
    list_filter = ("status",)
    search_fields = ("id", "event", "event__checkout_uuid")
    linked_by = ("event__checkout_uuid",)
    # There is no index on these foreign keys, so no other admin page can list deliveries by merchant or by
    # subscription.
    unindexed = ("merchant", "subscription")
    panels = (("webhooks.attempt", "delivery"),)
    secret = ("lease_token",)
    extra_columns = ("checkout",)
    actions = ("resend", "resend_although_over")

    @admin.display(description="checkout")
    def checkout(self, delivery: Delivery) -> str:
        checkout_uuid = delivery.event.checkout_uuid
        return columns.key_link("checkout.checkout", checkout_uuid) if checkout_uuid else columns.EMPTY_CELL

    def offers(self, action: str, row: Delivery) -> bool:
        is_over = resending.is_hold_over(row)
        return row.status != Delivery.Status.DELIVERED and is_over == (action == "resend_although_over")

    @admin.action(description="Send again", permissions=["resend"])
    def resend(self, request: HttpRequest, rows: QuerySet[Delivery]) -> None:
        self._resend(request, rows, although_over=False)

    @admin.action(description="Send again, even if the hold is over", permissions=["resend"])
    def resend_although_over(self, request: HttpRequest, rows: QuerySet[Delivery]) -> None:
        self._resend(request, rows, although_over=True)

    def _resend(self, request: HttpRequest, rows: QuerySet[Delivery], *, although_over: bool) -> None:
        chosen: dict[Merchant, list[UUID]] = defaultdict(list)
        for delivery in rows.select_related("merchant"):
            chosen[delivery.merchant].append(delivery.pk)
        for merchant, uuids in chosen.items():
            try:
                resent = resending.resend_selected(
                    merchant, uuids, cause=cause_of_operator(request), although_over=although_over
                )
            except subscriptions.SubscriptionNotFound:
                self.show_result(request, merchant, None)
                continue
            for delivery in Delivery.objects.filter(pk__in=uuids):
                self.log_change(request, delivery, "Queued to be sent again.")
            self.show_result(request, merchant, resent)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_select_related = ("delivery__event", "delivery__subscription")
    list_display = (
        "started_at",
        "event_type",
        "number",
        "http_status",
        "error_message",
        "duration_ms",
        "delivery",
    )
    search_fields = ("id", "delivery", "delivery__event")
    panel_order = ("number",)
    ordering = merchants_order = ("-started_at", "-pk")  # type: ignore[assignment]  # a longer tuple

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the matching rows. A list of all attempts sorts only the newest ids, because it has no index."""
        rows, has_duplicates = super().get_search_results(request, queryset, search_term)
        is_of_all = not search_term and not any("__" in name for name in request.GET)
        return lists.limit_to_newest(request, rows) if is_of_all else rows, has_duplicates
