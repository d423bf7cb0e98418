from django.contrib import admin

from config.lib.admin import ReadOnlyAdmin, link
from webhooks.models import Attempt, Delivery, Event, SigningSecret, Subscription


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    list_display = ("merchant", "url", "event_types", "created_at", "ended_at")
    list_select_related = ("merchant",)
    search_fields = ("url", "merchant__name")


@admin.register(SigningSecret)
class SigningSecretAdmin(ReadOnlyAdmin):
    list_display = ("subscription", "created_at", "expires_at")
    list_select_related = ("subscription",)
    secret = ("secret",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("id", "type", "merchant", "checkout_uuid", "created_at", "superseded_at")
    list_filter = ("type",)
    list_select_related = ("merchant",)
    search_fields = ("=id", "=checkout_uuid")


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ("id", "of_event", "merchant", "status", "attempt_count", "next_attempt_at", "ended_at")
    list_filter = ("status", "event__type")
    list_select_related = ("event", "merchant")
    search_fields = ("=id", "=event__id", "=event__checkout_uuid")
    secret = ("lease_token",)

    @admin.display(description="event")
    def of_event(self, delivery: Delivery) -> str:
        return link(delivery.event)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "of_delivery",
        "number",
        "http_status",
        "error_message",
        "duration_ms",
        "started_at",
    )
    list_select_related = ("delivery",)
    search_fields = ("=delivery__event__id",)

    @admin.display(description="delivery")
    def of_delivery(self, attempt: Attempt) -> str:
        return link(attempt.delivery)
