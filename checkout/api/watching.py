"""Reads of orders that the sandbox watches leave a row, as POSTs do: the checklist shows them (rule trial.reads).

Production watches none, and no read waits for this there.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from rest_framework.request import Request

from checkout.models import ApiCall, Refund
from config.lib.web import request_id
from payments.cause import caller_of

# What their merchant_order_id begins with. Besides, each is watched whose refund has failed.
WATCHED = ("trial-refused-", "trial-lost-")
MAX_NOTED = 5  # by one read


def note(request: Request, shown: Sequence[Mapping[str, Any]]) -> None:
    """Leave a row for each watched order among those that are shown."""
    if not settings.SANDBOX:
        return
    watched = [one for one in shown if _is_watched(one)]
    if watched:
        ApiCall.objects.bulk_create(_row(request, one) for one in watched[:MAX_NOTED])


def _is_watched(shown: Mapping[str, Any]) -> bool:
    if shown["merchant_order_id"].startswith(WATCHED):
        return True
    return any(refund["status"] == Refund.Status.FAILED for refund in shown.get("refunds", ()))


def _row(request: Request, shown: Mapping[str, Any]) -> ApiCall:
    caller = caller_of(request)
    return ApiCall(
        merchant=caller.merchant,
        client_uuid=caller.client_uuid,
        checkout_uuid=UUID(shown["checkout_uuid"]),
        method="GET",
        path=request.path[:300],
        request_id=request_id.current(),
        status=200,
        duration_ms=request_id.age_ms(),
        created_at=Now(),
    )
