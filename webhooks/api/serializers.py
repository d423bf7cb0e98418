"""The requests of the webhook API."""

from django.conf import settings
from rest_framework import serializers as drf

from config.lib.api import fields
from webhooks import targets
from webhooks.models import EventType
from webhooks.subscriptions import SUBSCRIBABLE

TOLD = tuple(kind.value for kind in EventType if kind != EventType.TEST)  # the types in the feed of events


class SubscriptionIn(fields.Body):
    """Where events go, and which ones (rules subscription.one, subscription.types)."""

    url = fields.Text(
        maximum=2048,
        format="uri",
        help_text="Your endpoint: an https URL that is reachable from the internet, with a host name and not an "
        "IP address, on port 443 or on 1024 and above.",
    )
    event_types = fields.List(
        child=fields.OneOf(SUBSCRIBABLE),
        allow_empty=False,
        max_length=100,
        help_text="The event types that you want. `*` means all of them, including future ones.",
    )

    def validate_url(self, url: str) -> str:
        """Refuse an invalid URL together with errors of other fields; its name is resolved later."""
        try:
            return targets.check_url(url, allow_loopback=settings.WEBHOOK_LOOPBACK)
        except targets.TargetRefused as refused:
            raise drf.ValidationError(str(refused)) from None


class RotateIn(fields.Body):
    """`true` revokes the old secret at once."""

    revoke_previous = fields.Boolean(required=False, help_text="`true` stops all previous secrets at once.")


class RotateQuery(fields.Query):
    """The same flag in the query."""

    revoke_previous = fields.QueryBoolean(
        required=False, help_text="`true` stops all previous secrets at once."
    )


class DeliveriesQuery(fields.Query):
    """Paging and filters of the delivery log."""

    limit = fields.QueryInteger(minimum=1, maximum=200, default=50, help_text="How many entries a page has.")
    cursor = fields.Cursor(required=False, maximum=500, help_text="`next_cursor` of the previous page.")
    event_type = fields.OneOf(
        tuple(kind.value for kind in EventType), required=False, help_text="Only events of this type."
    )
    event_id = fields.Text(required=False, format="uuid", help_text="Only attempts of this event.")
    status = fields.OneOf(("delivered", "failed"), required=False, help_text="Only entries with this status.")


class EventsQuery(fields.Query):
    """Where the feed of events begins or continues, and its filters."""

    type = fields.OneOf(TOLD, required=False, help_text="Only events of this type.")
    checkout_uuid = fields.Text(required=False, format="uuid", help_text="Only events of this checkout.")
    created_after = fields.Timestamp(
        required=False,
        help_text="Where to begin, by `created_at`: within the last 30 days. Without it, 24 hours ago. What is written "
        "after the first call comes whatever its date.",
    )
    limit = fields.QueryInteger(minimum=1, maximum=200, default=50, help_text="How many entries a page has.")
    cursor = fields.Cursor(
        required=False,
        maximum=500,
        help_text="`next_cursor` of the page before, with the same filters. It is good for as long as events are kept: "
        "422 if some that it has not led to are dropped.",
    )
