"""Ends pledges if a mate withdraws, if an operator stops the merchant, or if a person's data is erased.

Rules pledge.withdraw, pledge.ends.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkout import expiry, mate_shares, pledges
from checkout.group import share_claims
from checkout.mate_shares import ShareNotOpen
from checkout.models import Checkout, PaymentRequest
from checkout.states import OperationInProgress, ShareStatus, Status
from payments import open_operations, operator_stops
from payments.models import Operation, Payment

BATCH = 200  # maximum number of orders that one run of the pump handles


def withdraw(share_uuid: UUID, *, mate: UUID, uses_another_card: bool = False) -> PaymentRequest:
    """End a mate's pledge because the mate withdraws it. A share that is already open is returned unchanged.

    `uses_another_card` is true if the mate wants to use another card. If the share was taken through the group link, it
    is then reserved for the mate for fifteen minutes. Raises ShareNotOpen if this mate has not pledged the share.
    Raises OperationInProgress while the lead's card is being authorized or is held. Rule pledge.withdraw.
    """
    with transaction.atomic(durable=True):
        share, checkout = mate_shares.lock_share(share_uuid)
        expiry.expire_if_due(checkout, checkout.locked_at)
        share.refresh_from_db(fields=["status"])
        if share.mate_id != mate or share.status not in (ShareStatus.PLEDGED, ShareStatus.OPEN):
            raise ShareNotOpen(share.status)
        if not may_withdraw(checkout):
            raise OperationInProgress
        if share.status == ShareStatus.PLEDGED:
            claim, name, now = share.claim_digest, share.claim_name, checkout.locked_at
            reason = pledges.ANOTHER_CARD if uses_another_card else pledges.WITHDRAWN
            pledges.end_pledge(share, now, reason)
            if uses_another_card and claim:
                share.claim(claim, now, now + share_claims.SIGNED_IN, name=name)
    return share


def may_withdraw(checkout: Checkout) -> bool:
    """Return whether mates can withdraw now. They cannot while the lead's card is being authorized or is held."""
    return checkout.status == Status.CREATED and open_operations.open_operation(checkout.pk) is None


def pledged_at(share_uuids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Map each of these pledged shares to the time at which its mate entered the card."""
    if not share_uuids:
        return {}
    holds = Payment.objects.filter(subject__in=share_uuids, is_live=True)
    return dict(holds.values_list("subject", "created_at"))


def withdrawn_at(share_uuids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Map each of the shares whose last pledge was withdrawn to the time of that withdrawal."""
    if not share_uuids:
        return {}
    voids = Operation.objects.filter(payment__subject__in=share_uuids, kind=Operation.Kind.VOID)
    rows = voids.order_by("created_at").values_list(
        "payment__subject", "created_at", "payment__decline_reason"
    )
    last = {share_uuid: (at, reason) for share_uuid, at, reason in rows}
    return {share_uuid: at for share_uuid, (at, reason) in last.items() if reason == pledges.WITHDRAWN}


def orders_of_stopped_merchants() -> list[tuple[UUID, UUID]]:
    """Return the merchant and the id of each order that has pledges although its merchant is stopped."""
    stopped = operator_stops.stopped_merchants()
    if not stopped:
        return []
    rows = Checkout.objects.filter(payment_requests__status=ShareStatus.PLEDGED)
    if None not in stopped:
        rows = rows.filter(merchant__in=stopped)
    return list(rows.values_list("merchant", "pk").distinct()[:BATCH])


def end_of_stopped_merchant(checkout_uuid: UUID) -> None:
    """End the pledges of an order if its merchant is still stopped."""
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        if operator_stops.is_stopped(checkout.merchant_id):
            pledges.end_all_of_stopped_merchant(checkout, checkout.locked_at)


def end_of_mate(customer_uuid: UUID) -> None:
    """End the pledges of a mate whose data is being erased. Must be called in a transaction."""
    pledged = PaymentRequest.objects.filter(mate=customer_uuid, status=ShareStatus.PLEDGED)
    for share_uuid in pledged.order_by("checkout").values_list("pk", flat=True):
        share, checkout = mate_shares.lock_share(share_uuid)
        if share.status == ShareStatus.PLEDGED and share.mate_id == customer_uuid:
            pledges.end_pledge(share, checkout.locked_at)
