"""An order's second badge. It shows a failed or returned refund, a dispute, or an operation in doubt.

Refunds and disputes have the same badges as in the merchants' portal. One statement reads the badges for all
orders on a page.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet, Value
from django.http import HttpRequest

from payments.models import Dispute, Operation
from portal.backoffice.badges import OPERATION, State
from portal.badges import REFUND_FAILED, REFUND_RETURNED, Badge
from portal.dashboard import merchant_tasks
from portal.orders.disputed import ORDER_BADGES

FAILED, RETURNED, UNCLEAR = "failed", "returned", "unclear"
# The states of an operation in doubt. An operation that waits for the payer is not in doubt.
STATES = (State.IN_FLIGHT, State.UNKNOWN)
BADGES: dict[str, Badge] = {
    FAILED: REFUND_FAILED,
    RETURNED: REFUND_RETURNED,
    UNCLEAR: OPERATION[State.UNKNOWN],
} | {str(status): badge for status, badge in ORDER_BADGES.items()}


def badges_of(uuids: Sequence[UUID], request: HttpRequest) -> dict[UUID, Badge]:
    """Return the second badges, by the UUID of the order. Orders without a second badge are left out.

    Only rows that this operator may see are considered.
    """
    queries = [
        query
        for query in _badge_queries(uuids)
        if admin.site.get_model_admin(query.model).has_view_permission(request)
    ]
    if not uuids or not queries:
        return {}
    union = queries[0].union(*queries[1:], all=True)
    by_rank = sorted(union, key=lambda row: (_badge_rank(row[1]), row[2]))
    return {uuid: BADGES[name] for uuid, name, _ in by_rank}


def _badge_rank(name: str) -> int:
    """Return a badge's rank. A badge with a higher rank replaces a badge with a lower rank.

    The latest dispute replaces a failed or returned refund, and an operation in doubt replaces both.
    """
    return {FAILED: 0, RETURNED: 0, UNCLEAR: 2}.get(name, 1)


def _badge_queries(uuids: Sequence[UUID]) -> Iterator[QuerySet[Any, Any]]:
    failed = merchant_tasks.failed_refunds(checkout__in=uuids)
    yield failed.order_by().values_list("checkout", Value(FAILED), "created_at")
    returned = merchant_tasks.returned_refunds(checkout__in=uuids)
    yield returned.order_by().values_list("checkout", Value(RETURNED), "created_at")
    disputes = Dispute.objects.filter(checkout_uuid__in=uuids)
    yield disputes.order_by().values_list("checkout_uuid", "status", "created_at")
    unclear = Operation.objects.filter(payment__checkout_uuid__in=uuids, state__in=STATES)
    yield unclear.order_by().values_list("payment__checkout_uuid", Value(UNCLEAR), "created_at")
