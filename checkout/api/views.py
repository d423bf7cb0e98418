"""Views of the merchant API of checkouts (rules read.fields, list.filters)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from checkout import cancellations, captures, creation, current_checkouts, expiry, refunds
from checkout.api import detailed_reads, responses, serializers, watched_reads
from checkout.api.idempotency import RecordedView
from checkout.creation import Order
from checkout.models import Checkout
from checkout.states import Status
from config.lib import cursor
from config.lib.api.view import ApiView
from payments import open_operations
from payments.cause import caller_of, cause_of
from payments.models import Merchant


class Checkouts(RecordedView):
    """Endpoint for creating a checkout and for listing the merchant's checkouts."""

    scopes = {"GET": "checkouts:read", "POST": "checkouts:write"}
    queries = {"GET": serializers.CheckoutListQuery}
    in_one_transaction = True

    def carry_out(self, request: Request, checkout_uuid: UUID | None) -> Response:
        merchant = caller_of(request).merchant
        order = Order(**self.body(serializers.CheckoutIn, merchant=merchant))
        checkout = creation.create(merchant, order, cause=cause_of(request))
        return Response({"data": responses.CreatedCheckoutOut.write(checkout)}, status=201)

    def get(self, request: Request) -> Response:
        rows, next_cursor = _read_page(caller_of(request).merchant, self.query)
        watched_reads.record_reads(request, rows)
        page = responses.CheckoutListOut.write({"checkouts": rows, "next_cursor": next_cursor})
        return Response({"data": page})


_FILTERS = {
    "status": "status",
    "merchant_order_id": "merchant_order_id",
    "created_after": "created_at__gt",
    "created_before": "created_at__lt",
}
# When its deadline passes, a checkout gets one of these statuses.
_BY_TIME = (Status.VOIDED, Status.EXPIRED)


def _read_page(merchant: Merchant, query: Mapping[str, Any]) -> tuple[list[Checkout], str | None]:
    """Return one page of checkouts and the cursor for the next page.

    If the deadline of a checkout on the page has passed, the checkout is ended first. The page then omits it if it no
    longer matches the filters. Some filters match a checkout only after it has ended. With such a filter, all the
    merchant's checkouts whose deadline has passed are ended before the page is read. Rules list.pages, list.changes,
    lapse.whoever.
    """
    filters = {lookup: query[name] for name, lookup in _FILTERS.items() if name in query}
    # The index on this column ignores case, so PostgreSQL uses it only for an `iexact` condition.
    if "merchant_order_id" in filters:
        filters["merchant_order_id__iexact"] = filters["merchant_order_id"]
    if query.get("status") in _BY_TIME or "updated_after" in query:
        expiry.expire_late_of(merchant)
    rows = current_checkouts.with_read_at(
        detailed_reads.with_parts(Checkout.objects.filter(merchant=merchant, **filters))
    )
    scope, limit, after = f"checkouts:{merchant.pk}", query["limit"], query.get("cursor")
    if query.get("sort"):
        return _read_changes(rows, merchant, f"{scope}:changes", query)
    if "updated_after" in query:
        since = query["updated_after"]
        begun = open_operations.orders_with_call_since(merchant.pk, since)
        rows = rows.filter(Q(updated_at__gt=since) | Q(pk__in=begun))
    checkouts, next_cursor = cursor.read_page(rows, scope=scope, limit=limit, cursor=after)
    return current_checkouts.refresh_late(rows, checkouts), next_cursor


def _read_changes(
    rows: QuerySet[Checkout], merchant: Merchant, scope: str, query: Mapping[str, Any]
) -> tuple[list[Checkout], str]:
    """Return the checkouts that changed after a cursor, and the next cursor.

    If a checkout lapses during this call, the lapse is a new change, so a later page lists the checkout again.
    """

    def begun(since: datetime) -> Iterable[Checkout]:
        uuids = open_operations.orders_with_call_since(merchant.pk, since)
        return rows.filter(pk__in=uuids) if uuids else []

    start, limit, after = query.get("updated_after"), query["limit"], query.get("cursor")
    feed = cursor.Feed(rows, "updated_at", detailed_reads.changed_at, beside=begun)
    checkouts, next_cursor = cursor.read_changes(feed, scope=scope, limit=limit, cursor=after, start=start)
    return current_checkouts.refresh_late(rows, checkouts), next_cursor


class OneCheckout(ApiView):
    """Endpoint that returns the current state of one checkout."""

    scopes = {"GET": "checkouts:read"}

    def get(self, request: Request, checkout_uuid: UUID) -> Response:
        checkout = detailed_reads.read_checkout(caller_of(request).merchant, checkout_uuid)
        watched_reads.record_reads(request, [checkout])
        return Response({"data": responses.CheckoutOut.write(checkout)})


class Capture(RecordedView):
    """Endpoint that captures the held money. It returns after the capture."""

    scopes = {"POST": "checkouts:write"}
    limit = "verbs"

    def is_urgent(self, request: Request, checkout_uuid: UUID) -> bool:
        """Return whether this capture is exempt from the rate limits.

        The first capture call for a hold is exempt, and so is a call shortly before the end of the hold (rule
        limit.last_capture).
        """
        return current_checkouts.needs_urgent_capture(caller_of(request).merchant, checkout_uuid)

    def carry_out(self, request: Request, checkout_uuid: UUID | None) -> Response:
        fields = self.body(serializers.CaptureIn)
        merchant = caller_of(request).merchant
        amount = fields.get("amount")
        checkout = captures.capture(
            merchant, _require_uuid(checkout_uuid), amount=amount, cause=cause_of(request)
        )
        return Response(
            {"data": responses.CheckoutOut.write(detailed_reads.read_checkout(merchant, checkout.pk))}
        )


class Cancel(RecordedView):
    """Endpoint that cancels a checkout: it releases the hold, or ends an unpaid checkout."""

    scopes = {"POST": "checkouts:write"}
    limit = "verbs"

    def carry_out(self, request: Request, checkout_uuid: UUID | None) -> Response:
        note = self.body(serializers.CancelIn).get("reason") or ""
        merchant = caller_of(request).merchant
        checkout = cancellations.cancel(
            merchant, _require_uuid(checkout_uuid), note=note, cause=cause_of(request)
        )
        return Response(
            {"data": responses.CheckoutOut.write(detailed_reads.read_checkout(merchant, checkout.pk))}
        )


class Refund(RecordedView):
    """Endpoint that refunds the whole checkout."""

    scopes = {"POST": "refunds:write"}

    def carry_out(self, request: Request, checkout_uuid: UUID | None) -> Response:
        fields = self.body(serializers.RefundIn)
        accepted = refunds.accept(
            caller_of(request).merchant,
            _require_uuid(checkout_uuid),
            ref=fields["merchant_refund_ref"],
            reason=fields.get("reason"),
            amount=fields.get("amount"),
            cause=cause_of(request),
        )
        if accepted.is_new:
            return Response(status=204)
        return Response({"data": responses.RefundOut.write(accepted.refund)})


def _require_uuid(checkout_uuid: UUID | None) -> UUID:
    """Return the checkout's uuid. It is never None here, because these URLs always contain it."""
    if checkout_uuid is None:
        raise Checkout.DoesNotExist
    return checkout_uuid
