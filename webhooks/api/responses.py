"""What goes out about webhooks, as the API's document tells it."""

from typing import Any

from rest_framework import serializers

from config.lib import fields
from webhooks.models import EventType
from webhooks.subscriptions import SUBSCRIBABLE


class SubscriptionOut(serializers.Serializer[Any]):
    url = serializers.URLField(max_length=2048)
    event_types = serializers.ListField(child=serializers.ChoiceField(SUBSCRIBABLE), allow_empty=False)
    created_at = fields.Timestamp()
    updated_at = fields.Timestamp()


class NewSubscriptionOut(SubscriptionOut):
    signing_secret = fields.Text()


class RotatedSecretOut(serializers.Serializer[Any]):
    signing_secret = fields.Text()
    previous_secret_expires_at = fields.Timestamp(allow_null=True)


class DeliveryAttemptOut(serializers.Serializer[Any]):
    event_id = serializers.UUIDField()
    event_type = serializers.ChoiceField(EventType.choices)
    attempt_number = serializers.IntegerField(min_value=1)
    http_status = serializers.IntegerField(min_value=100, max_value=999, allow_null=True)
    error_message = fields.Text(allow_null=True)
    duration_ms = serializers.IntegerField(min_value=0, allow_null=True)
    attempted_at = fields.Timestamp()
    status = serializers.ChoiceField(["delivered", "failed"])
    next_attempt_at = fields.Timestamp(allow_null=True)
    checkout_uuid = serializers.UUIDField(allow_null=True)


class DeliveryLogOut(serializers.Serializer[Any]):
    deliveries = serializers.ListField(child=DeliveryAttemptOut(), max_length=200)
    next_cursor = fields.Text(maximum=500, allow_null=True)
