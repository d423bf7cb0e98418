"""Views of the webhook API: the subscription, the rotation of its secret, and the log (rules subscription.*)."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.module_loading import import_string
from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response

from config.lib import cursor
from config.lib.api.view import ApiView
from payments.cause import caller_of
from payments.models import Merchant
from webhooks import lookup, subscriptions, url_check
from webhooks.api import responses, serializers
from webhooks.api.responses import LoggedAttempt
from webhooks.models import Attempt, Delivery, Event
from webhooks.targets import TargetRefused

# Only these columns are read, and no model objects are created. Three objects for each entry would cost as much as the
# rest of the call. Deliveries and events are read separately by id, because PostgreSQL would plan a join for all their
# partitions.
_COLUMNS = (
    "id",
    "number",
    "event_type",
    "http_status",
    "error_message",
    "duration_ms",
    "started_at",
    "is_delivered",
    "delivery_id",
)
_DELIVERY_COLUMNS = ("id", "event_id", "attempt_count", "next_attempt_at")


class OneSubscription(ApiView):
    """Endpoint that reads, registers, changes and ends the merchant's subscription."""

    scopes = {"GET": "webhooks:read", "POST": "webhooks:write", "DELETE": "webhooks:write"}

    def get(self, request: Request) -> Response:
        return Response(
            {
                "data": responses.SubscriptionOut.write(
                    subscriptions.read_subscription(caller_of(request).merchant)
                )
            }
        )

    def post(self, request: Request) -> Response:
        body = self.body(serializers.SubscriptionIn)
        try:
            registered = _register(request, body["url"], body["event_types"])
        except TargetRefused as refused:
            raise drf.ValidationError({"url": [str(refused)]}) from None
        if registered.signing_secret is None:
            return Response({"data": responses.SubscriptionOut.write(registered.subscription)})
        return Response({"data": responses.CreatedSubscriptionOut.write(registered)}, status=201)

    def delete(self, request: Request) -> Response:
        with transaction.atomic(durable=True):
            subscriptions.end(caller_of(request).merchant)
            _record_action(request, "subscription_ended")
        return Response(status=204)


class RotateSecret(ApiView):
    """Endpoint that creates a new signing secret."""

    scopes = {"POST": "webhooks:write"}
    queries = {"POST": serializers.RotateQuery}

    def post(self, request: Request) -> Response:
        revoke_previous = _revoke_previous(request, self.query)
        with transaction.atomic(durable=True):
            rotated = subscriptions.rotate(caller_of(request).merchant, revoke_previous=revoke_previous)
            _record_action(request, "secret_rotated", revoke_previous=revoke_previous)
        return Response({"data": responses.RotatedSecretOut.write(rotated)})


def _register(request: Request, url: str, event_types: list[str]) -> subscriptions.SavedSubscription:
    merchant = caller_of(request).merchant
    checked = url_check.check_merchant_url(merchant, url)
    with transaction.atomic(durable=True):
        is_approved = import_string(settings.KEYS_APPROVED_BY)(caller_of(request))
        registered = subscriptions.save_subscription(
            merchant, url=checked, event_types=event_types, is_approved=is_approved
        )
        if registered.is_changed:
            _record_action(
                request, "subscription_saved", **subscriptions.audit_facts(registered.subscription)
            )
    return registered


def _record_action(request: Request, action: str, **facts: Any) -> None:
    """Record an API client's action in the audit log, with the function that settings.KEYS_RECORDED_BY names.

    Must be called in the same transaction as the action.
    """
    record = import_string(settings.KEYS_RECORDED_BY)
    record(request, caller_of(request), action, **facts)


def _revoke_previous(request: Request, query: Mapping[str, Any]) -> bool:
    """Return `revoke_previous` from the body or the query. Raises ValidationError if the two differ."""
    body = serializers.RotateIn(data=request.data)
    body.is_valid(raise_exception=True)
    values = set(body.validated_data.values())
    values |= set(query.values())
    if len(values) > 1:
        raise drf.ValidationError(
            {
                "revoke_previous": [
                    "The body and the query have different values. Send it in only one of them."
                ]
            }
        )
    return values == {True}


class Deliveries(ApiView):
    """Endpoint that returns the delivery log. It has one entry per attempt, newest first."""

    scopes = {"GET": "webhooks:read"}
    queries = {"GET": serializers.DeliveriesQuery}

    def get(self, request: Request) -> Response:
        query = self.query
        merchant = caller_of(request).merchant
        rows, next_cursor = cursor.read_page(
            _matching_attempts(merchant, query),
            scope=f"deliveries:{merchant.pk}",
            limit=query["limit"],
            cursor=query.get("cursor"),
            key="started_at",
            in_steps=query.get("status") == "delivered",
        )
        page = responses.DeliveryLogOut.write(
            {"deliveries": _with_deliveries(rows), "next_cursor": next_cursor}
        )
        return Response({"data": page})


def _matching_attempts(merchant: Merchant, query: Mapping[str, Any]) -> QuerySet[Attempt, Any]:
    """Return the finished attempts that match the filters. Attempts in flight are not in the log yet."""
    rows = (
        lookup.attempts_of([_parse_event_id(query["event_id"])])
        if "event_id" in query
        else Attempt.objects.all()
    )
    rows = rows.filter(merchant=merchant, ended_at__isnull=False)
    if "event_type" in query:
        rows = rows.filter(event_type=lookup.EventTypeValue(query["event_type"]))
    if "status" in query:
        rows = rows.filter(lookup.result_condition(is_delivered=query["status"] == "delivered"))
    return rows.values_list(*_COLUMNS, named=True)


def _parse_event_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise drf.ValidationError({"event_id": ["Must be the id of an event, a UUID."]}) from None


def _with_deliveries(attempts: Sequence[Any]) -> list[LoggedAttempt]:
    """Return the attempts with the data of their deliveries and events (rules log.*).

    If the partition of a delivery or an event is deleted during this read, the attempts that belong to it are left
    out.
    """
    ids = {attempt.delivery_id for attempt in attempts}
    rows = Delivery.objects.filter(pk__in=ids)
    deliveries = {row.id: row for row in rows.values_list(*_DELIVERY_COLUMNS, named=True)}
    events = Event.objects.filter(pk__in={row.event_id for row in deliveries.values()})
    about = dict(events.values_list("pk", "checkout_uuid"))
    pairs = ((attempt, deliveries.get(attempt.delivery_id)) for attempt in attempts)
    return [
        LoggedAttempt(attempt, sent, about[sent.event_id])
        for attempt, sent in pairs
        if sent and sent.event_id in about
    ]
