"""Serializers for the webhook API's responses (rules subscription.*, rotation.*, log.*, events.*)."""

from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from rest_framework import serializers as drf

from config.lib.api import fields
from config.lib.api.responses import Computed, OpenChoice, Out, Time
from webhooks import delivery
from webhooks.models import Delivery, EventType
from webhooks.subscriptions import SUBSCRIBABLE

URL = partial(
    drf.URLField,
    max_length=2048,
    help_text="Your endpoint: an https URL that is reachable from the internet, with a host name and not an "
    "IP address, on port 443 or on 1024 and above.",
)
CREATED_AT = partial(Time, help_text="When the subscription was created.")
UPDATED_AT = partial(Time, help_text="When the subscription last changed.")
SIGNING_SECRET = partial(
    fields.Text,
    help_text="The secret that signs your deliveries: `whsec_` and base64 of 32 bytes. It is shown only this "
    "once. Keep it on your server.",
)
EVENT_ID = partial(drf.UUIDField, help_text="The id of the event, the same in all its attempts.")


def _event_types(**options: Any) -> fields.List:
    words = "The event types that you receive. `*` means all of them."
    return fields.List(child=OpenChoice(SUBSCRIBABLE), help_text=words, **options)


class SubscriptionOut(Out):
    """A subscription, without its secret."""

    url = URL()
    event_types = _event_types()
    created_at = CREATED_AT()
    updated_at = UPDATED_AT()


class CreatedSubscriptionOut(Out):
    """A new subscription, with its secret."""

    url = URL(source="subscription.url")
    event_types = _event_types(source="subscription.event_types")
    created_at = CREATED_AT(source="subscription.created_at")
    updated_at = UPDATED_AT(source="subscription.updated_at")
    signing_secret = SIGNING_SECRET()


class RotatedSecretOut(Out):
    """Response to the rotation of a secret. It contains the new secret."""

    signing_secret = SIGNING_SECRET()
    previous_secret_expires_at = Time(
        allow_null=True, help_text="When the previous secret stops signing. Null if it was revoked."
    )


class LoggedAttempt(NamedTuple):
    """An attempt, with its delivery and with the checkout that its event is about."""

    attempt: Any
    delivery: Any
    checkout_uuid: UUID | None

    @property
    def next_attempt_at(self) -> Any:
        """The time of the delivery's next attempt, or None if this is not the latest attempt of the delivery."""
        is_latest = self.attempt.number == self.delivery.attempt_count
        return self.delivery.next_attempt_at if is_latest else None


class DeliveryAttemptOut(Out):
    """One entry of the delivery log, made from a LoggedAttempt."""

    event_id = EVENT_ID(source="delivery.event_id")
    event_type = OpenChoice(EventType, source="attempt.event_type", help_text="The type of the event.")
    attempt_number = drf.IntegerField(
        min_value=1, source="attempt.number", help_text="1 for the first attempt."
    )
    http_status = drf.IntegerField(
        min_value=100,
        max_value=999,
        source="attempt.http_status",
        allow_null=True,
        help_text="The status of your endpoint's answer. Null if your endpoint did not answer.",
    )
    error_message = Computed(
        lambda logged: delivery.describe_error(logged.attempt.error_message),
        fields.Text(),
        allow_null=True,
        help_text="Why the attempt failed. Null if your endpoint answered 2xx.",
    )
    duration_ms = drf.IntegerField(
        min_value=0,
        source="attempt.duration_ms",
        allow_null=True,
        help_text="The attempt's duration in milliseconds.",
    )
    attempted_at = Time(source="attempt.started_at", help_text="When the attempt started.")
    status = Computed(
        lambda logged: "delivered" if logged.attempt.is_delivered else "failed",
        OpenChoice(("delivered", "failed")),
        help_text="`delivered` if your endpoint answered 2xx, otherwise `failed`.",
    )
    next_attempt_at = Time(
        allow_null=True,
        help_text="When the service sends the event again. Null on earlier attempts, and if it does not "
        "send it again.",
    )
    checkout_uuid = drf.UUIDField(
        allow_null=True, help_text="The checkout that the event is about. Null for a test event."
    )


class DeliveryLogOut(Out):
    """One page of the delivery log."""

    deliveries = fields.List(
        child=DeliveryAttemptOut(), max_length=200, help_text="The attempts, newest first."
    )
    next_cursor = fields.Text(
        maximum=500,
        allow_null=True,
        help_text="Send it as `cursor` for the next page. Null on the last page.",
    )


class Envelope(drf.Field[bytes, Any, orjson.Fragment, Any]):
    """Field with the JSON of an event. It is the same, byte for byte, as in the delivery."""

    def to_representation(self, value: bytes) -> orjson.Fragment:
        return orjson.Fragment(value)


class ListedEventOut(Out):
    """One entry of the feed of events."""

    event = Envelope(
        help_text="The envelope, byte for byte as the service sends it. `data` is null if your key lacks the "
        "scope for it, or if it was deleted."
    )
    delivery_status = OpenChoice(
        (*Delivery.Status, "none"),
        help_text="The status of the event's delivery. `pending`: more attempts follow. `delivered`: your "
        "endpoint answered 2xx. `parked`: the service gave up. `superseded`: the hold ended first, or the "
        "person was erased. `none`: no subscription wanted the event.",
    )


class EventFeedOut(Out):
    """One page of the feed of events."""

    events = fields.List(
        child=ListedEventOut(),
        max_length=200,
        help_text="The events, in the order in which they were written.",
    )
    next_cursor = fields.Text(
        maximum=500, help_text="Store it, and send it as `cursor` to get the events after this page."
    )
