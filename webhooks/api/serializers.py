"""Serializers for the webhook API's requests."""

from typing import Any

from django.conf import settings
from rest_framework import serializers as drf

from config.lib.api import fields
from webhooks import targets
from webhooks.models import EventType
from webhooks.subscriptions import SUBSCRIBABLE

# The event types that the feed lists.
LISTED_TYPES = tuple(kind.value for kind in EventType if kind != EventType.TEST)


class SubscriptionIn(fields.Body):
    """Request to register or change a subscription (rules subscription.one, subscription.types)."""

    url = fields.Text(
        maximum=2048,
        format="uri",
        help_text="Your endpoint: an https URL that is reachable from the internet, with a host name and "
        "not an IP address, on port 443 or on 1024 and above. Only a service on your own machine (`make run`) "
        "also accepts `http://localhost` and `http://127.0.0.1`.",
    )
    event_types = fields.List(
        child=fields.OneOf(SUBSCRIBABLE),
        allow_empty=False,
        max_length=100,
        help_text="The event types to receive. `*` means all of them, including future ones.",
    )

    def validate_url(self, url: str) -> str:
        """Return the URL in its normal form. Raises ValidationError.

        The host name is resolved later, in `url_check`. This allows errors in the URL to be reported together with
        errors in other fields.
        """
        try:
            return targets.check_url(url, allow_loopback=settings.WEBHOOK_LOOPBACK)
        except targets.TargetRefused as refused:
            raise drf.ValidationError(str(refused)) from None


class RotateIn(fields.Body):
    """Request to rotate the signing secret."""

    revoke_previous = fields.Boolean(required=False, help_text="`true` stops all previous secrets at once.")


class RotateQuery(fields.Query):
    """Query of a rotation, with the flag `revoke_previous`."""

    revoke_previous = fields.QueryBoolean(
        required=False, help_text="`true` stops all previous secrets at once."
    )


class DeliveriesQuery(fields.Query):
    """Query of the delivery log: the page and the filters."""

    limit = fields.QueryInteger(
        minimum=1, maximum=200, default=50, help_text="The number of entries per page."
    )
    cursor = fields.Cursor(required=False, maximum=500, help_text="`next_cursor` of the previous page.")
    event_type = fields.OneOf(
        tuple(kind.value for kind in EventType), required=False, help_text="Only events of this type."
    )
    event_id = fields.Text(required=False, format="uuid", help_text="Only attempts of this event.")
    status = fields.OneOf(("delivered", "failed"), required=False, help_text="Only entries with this status.")


class EventsQuery(fields.Query):
    """Query of the feed of events: its start, the page and the filters."""

    type = fields.OneOf(LISTED_TYPES, required=False, help_text="Only events of this type.")
    checkout_uuid = fields.Text(required=False, format="uuid", help_text="Only events of this checkout.")
    created_after = fields.Timestamp(
        required=False,
        help_text="The earliest `created_at`, within the last 30 days and not in the future. The default is "
        "24 hours ago. Events that are written after the first call are listed regardless of their "
        "`created_at`.",
    )
    limit = fields.QueryInteger(
        minimum=1, maximum=200, default=50, help_text="The number of entries per page."
    )
    cursor = fields.Cursor(
        required=False,
        maximum=500,
        help_text="`next_cursor` of the previous page, with the same filters. If events after it have been "
        "deleted, the response is 422.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        fields.check_not_ahead(attrs, "created_after")
        return attrs
