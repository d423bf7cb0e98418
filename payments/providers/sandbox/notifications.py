"""Sends the bank's signed notifications to its caller. Each is sent until it is accepted, at most six times."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import Q

from config.lib import clock, crypto
from config.lib.leases import Queue
from config.lib.web import http
from payments.provider import ForgedNotification, Notification, Verdict
from payments.providers.sandbox import settling
from payments.providers.sandbox.models import BankNotification

HEADER = "Bank-Signature"
_PURPOSE = "bank.notifications"  # makes these signatures different from other keyed digests
TOLERANCE_SECONDS = 300
MAX_ATTEMPTS = 6
SECONDS = 5.0
LEASE = timedelta(seconds=10)


def send_due() -> None:
    """Settle the bank calls that are due, and send the notifications that are due."""
    settling.settle_due()
    while notification := _QUEUE.take_oldest(lambda _, now: {"due_at": now + LEASE}):
        send(notification)


def due_notifications(*, payments: Sequence[UUID]) -> Sequence[Notification]:
    """Settle the due calls of these payments. Return the notifications about them that are not accepted yet.

    These notifications are also sent as usual.
    """
    settling.settle_due(payments)
    of_these = Q(call__charge__payment__in=payments) | Q(dispute__charge__payment__in=payments)
    rows = BankNotification.objects.select_related("call__charge", "dispute__charge")
    due = rows.filter(of_these, due_at__isnull=False).order_by("pk")
    return [Notification(**_notification_facts(row)) for row in due]


def _notification_facts(notification: BankNotification) -> dict[str, Any]:
    """Return the content of a notification. If it is about a dispute, it contains only the payment's id."""
    call = notification.call
    if call is None:
        charge = notification.dispute.charge if notification.dispute else None
        return {"id": str(notification.pk), "payment": charge.payment if charge else None}
    return {
        "id": str(notification.pk),
        "payment": call.charge.payment,
        "kind": call.kind,
        "verdict": Verdict(notification.verdict),
        "operation": call.reference,
    }


_QUEUE = Queue(BankNotification.objects.all, "due_at")


def send(notification: BankNotification) -> None:
    """Try once to send a notification. If it is not accepted, it is due again after a growing delay."""
    body = orjson.dumps(_notification_facts(notification))
    try:
        headers = {"Content-Type": "application/json", HEADER: sign(body, int(time.time()))}
        answer = http.post(f"{settings.BASE_URL}/provider/notifications", body, headers, seconds=SECONDS)
        is_taken = answer.is_success
    except http.NoAnswer:
        is_taken = False
    notification.attempts += 1
    over = is_taken or notification.attempts >= MAX_ATTEMPTS
    notification.due_at = None if over else clock.now() + timedelta(seconds=2**notification.attempts)
    notification.save(update_fields=["attempts", "due_at"])


def sign(body: bytes, at: int) -> str:
    """Return the value of the signature header: `t=<unix seconds>,v1=<HMAC of time and body>`."""
    return f"t={at},v1={crypto.keyed_digest(_PURPOSE, _signed_text(body, str(at)))}"


def read_message(header: str, body: bytes) -> Notification:
    """Return the content of a message. Raises ForgedNotification if it is unsigned, too old or unreadable."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at, signature = parts.get("t", ""), parts.get("v1", "")
    if (
        not crypto.is_keyed_digest(signature, _PURPOSE, _signed_text(body, at))
        or abs(time.time() - int(at)) > TOLERANCE_SECONDS
    ):
        raise ForgedNotification
    try:
        content = orjson.loads(body)
        ids = {name: UUID(content[name]) for name in ("payment", "operation") if content.get(name)}
        outcome = {"verdict": Verdict(content["verdict"])} if "verdict" in content else {}
        return Notification(**content | ids | outcome)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ForgedNotification from error


def _signed_text(body: bytes, at: str) -> str:
    return f"{at}.{body.decode(errors='replace')}"
