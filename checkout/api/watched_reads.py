"""Writes reads of watched orders to the request log, for the integration checklist (rule trial.reads).

Only the sandbox writes such rows. In production no order is watched, so a read never has to write a row.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from rest_framework.request import Request

from checkout.models import ApiCall, Refund
from config.lib.web import request_id
from payments.cause import caller_of

# An order is watched if its merchant_order_id starts with one of these prefixes, or if its refund has failed.
WATCHED_PREFIXES = ("trial-refused-", "trial-lost-", "trial-unresolved-")
MAX_RECORDED = 5  # maximum number of rows that one read writes


def record_reads(request: Request, checkouts: Sequence[Any]) -> None:
    """Write a row for each watched order among `checkouts`, but at most MAX_RECORDED rows.

    `checkouts` are the result of a query with `detailed_reads.with_parts`.
    """
    if not settings.SANDBOX:
        return
    watched = [checkout for checkout in checkouts if _is_watched(checkout)]
    if watched:
        ApiCall.objects.bulk_create(_call_row(request, checkout.pk) for checkout in watched[:MAX_RECORDED])


def _is_watched(checkout: Any) -> bool:
    if checkout.merchant_order_id.startswith(WATCHED_PREFIXES):
        return True
    return any(refund["status"] == Refund.Status.FAILED for refund in checkout.refund_parts)


def _call_row(request: Request, checkout_uuid: UUID) -> ApiCall:
    caller = caller_of(request)
    return ApiCall(
        merchant=caller.merchant,
        client_uuid=caller.client_uuid,
        checkout_uuid=checkout_uuid,
        method="GET",
        path=request.path[:300],
        request_id=request_id.current_id(),
        status=200,
        duration_ms=request_id.age_ms(),
        created_at=Now(),
    )
