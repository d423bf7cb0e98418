"""The requests of the webhook API."""

from typing import Any

from rest_framework import serializers

from config.lib import fields
from webhooks.models import EventType
from webhooks.subscriptions import SUBSCRIBABLE


class SubscriptionIn(serializers.Serializer[Any]):
    """Where events go, and which ones (rules subscription.one, subscription.types)."""

    url = fields.Text(maximum=2048, format="uri")
    event_types = fields.List(child=fields.OneOf(SUBSCRIBABLE), allow_empty=False, max_length=100)


class RotateIn(serializers.Serializer[Any]):
    """`true` revokes the old secret at once."""

    revoke_previous = fields.Boolean(required=False)


class RotateQuery(fields.Query):
    """The same flag in the address."""

    revoke_previous = fields.OneOf(("true", "false"), required=False)


class DeliveriesQuery(fields.Query):
    """Paging and filters of the delivery log."""

    limit = fields.QueryInteger(minimum=1, maximum=200, default=50)
    cursor = fields.Cursor(required=False, maximum=500)
    event_type = fields.OneOf(tuple(kind.value for kind in EventType), required=False)
    event_id = fields.Text(required=False, format="uuid")
    status = fields.OneOf(("delivered", "failed"), required=False)
