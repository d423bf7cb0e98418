"""One checkout as the merchant sees it: where the money is, the order, the split in counts, its refunds."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import Http404

from checkout import reading, states
from checkout.models import Checkout, PaymentRequest, Refund
from checkout.states import SHARE_PAID, ShareStatus, Status
from config.lib.prepared import Prepared
from hosted_page import summary
from payments import money
from payments.models import Booking, Dispute, Merchant
from payments.outside import returns
from portal import badges

MAX_REFUNDS = 50  # the newest; the timeline has all of them
_ONE = Prepared(
    lambda pk, merchant: reading.with_read_at(
        Checkout.objects.filter(pk=pk, merchant=merchant).select_related("merchant", "payment")
    ),
    UUID,
    UUID,
)


def read(merchant: Merchant, checkout_uuid: UUID) -> Checkout:
    """Return the merchant's checkout as it is now. Raises Http404, also for another merchant's."""
    try:
        return reading.one(_ONE, checkout_uuid, merchant.pk)
    except Checkout.DoesNotExist:
        raise Http404 from None


def shown(checkout: Checkout) -> dict[str, Any]:
    """Return the context of the checkout's page, without the timeline."""
    refunds = list(Refund.objects.filter(checkout=checkout).order_by("-created_at")[:MAX_REFUNDS])
    disputes = Dispute.objects.filter(checkout_uuid=checkout.pk).select_related("payment")
    disputed = list(disputes.order_by("-created_at"))
    came_back = returns.outstanding(checkout.pk)
    is_taken_back = any(row.status != Dispute.Status.WON for row in disputed)
    outside = Booking.objects.filter(checkout_uuid=checkout.pk, kind=Booking.Kind.REFUNDED_OUTSIDE)
    has_come_back = came_back and checkout.status == Status.REFUNDED
    is_unplaced = is_taken_back or has_come_back or outside.exists()
    return {
        "checkout": checkout,
        "amount": money.display(checkout.amount, checkout.currency),
        "badge": badges.of_checkout(checkout),
        "place": "" if is_unplaced else _place(checkout),
        "lines": [summary.line(item, checkout.currency) for item in checkout.bill],
        "card": f"{checkout.payment.card_brand} {checkout.payment.card_last4}" if checkout.payment else "",
        "split": _split(checkout),
        "refunds": [{"refund": refund, "badge": badges.REFUND[refund.status]} for refund in refunds],
        "failed_refund": _failed(checkout, refunds),
        "came_back": money.display(came_back, checkout.currency) if came_back else "",
        "disputes": [_dispute(row) for row in disputed],
        "support": settings.SUPPORT_EMAIL,
        "can_refund": "refund" in states.actions(checkout.status) and not is_taken_back,
        "is_live": checkout.status in (Status.AUTHORIZED, Status.REFUNDING),
    }


def _dispute(row: Dispute) -> dict[str, Any]:
    """Return a dispute's context, which never says whose card it is."""
    return {
        "dispute": row,
        "badge": badges.DISPUTE[row.status],
        "amount": money.display(row.amount, row.payment.currency),
        "reason": row.reason.replace("_", " "),
    }


def _place(checkout: Checkout) -> str:
    """Return where the money is: "hold", "shop" or "card", "" where none has moved."""
    if checkout.status == Status.AUTHORIZED:
        return "hold"
    if checkout.status in (Status.CAPTURED, Status.REFUNDING):
        return "shop"
    return "card" if checkout.authorized_at else ""


def _split(checkout: Checkout) -> dict[str, Any] | None:
    """Return the shares as counts and sums, never a name or a number; None without mates."""
    if not checkout.has_mates:
        return None
    shares = list(PaymentRequest.objects.filter(checkout=checkout))
    paid = [share.amount for share in shares if share.status in SHARE_PAID]
    back = sum(share.amount for share in shares if share.status == ShareStatus.REIMBURSED)
    asked = sum(share.amount for share in shares)
    return {
        "count": len(shares),
        "paid": len(paid),
        "asked_amount": money.display(asked, checkout.currency),
        "back_amount": money.display(back, checkout.currency),
    }


def _failed(checkout: Checkout, refunds: list[Refund]) -> Refund | None:
    """Return the latest refund if it failed and none has made it good."""
    latest = refunds[0] if refunds and checkout.status == Status.CAPTURED else None
    return latest if latest and latest.status == Refund.Status.FAILED else None
