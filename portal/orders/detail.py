"""The template context for a checkout's page: where the money is, the items, the shares and the refunds."""

from typing import Any

from django.conf import settings

from checkout import current_checkouts, refunds
from checkout.models import Checkout, Refund
from checkout.remedies import reasons
from checkout.states import PLEDGEABLE, ShareStatus, Status
from hosted_page import summary
from payments import money
from payments.models import Dispute, Operation, Payment, Posting
from portal import badges
from portal.orders import disputed, endpoint_advice, outside_actions
from portal.orders.order import Order
from webhooks.models import Subscription

# The states in which the bank has not confirmed that it received the operation.
NOT_RECEIVED = (Operation.State.PLANNED, *Operation.OPEN)
NOT_ASKED = (ShareStatus.DRAFT, ShareStatus.CANCELLED)
MAX_REFUNDS = 50  # the page shows only the newest refunds; the timeline has all of them


def order_context(order: Order) -> dict[str, Any]:
    """Return the context for the order's page, without the timeline."""
    checkout = order.checkout
    newest_refunds = list(Refund.objects.filter(checkout=checkout).order_by("-created_at")[:MAX_REFUNDS])
    returned_amount = _returned_amount(order)
    is_taken_back = any(row.status != Dispute.Status.WON for row in order.disputes)
    is_contested = disputed.is_fully_disputed(order.disputes, checkout)
    is_elsewhere = (is_taken_back and not is_contested) or _is_money_elsewhere(order, returned_amount)
    return {
        "checkout": checkout,
        "amount": money.display(checkout.amount, checkout.currency),
        "refundable": money.display(outside_actions.refundable_amount(order), checkout.currency),
        "badge": badges.of_checkout(checkout),
        "place": "" if is_elsewhere else "hold" if is_contested else _place_of_money(checkout),
        "contested": is_contested,
        "lines": [summary.line_of(item, checkout.currency) for item in checkout.bill],
        "card": f"{checkout.payment.card_brand} {checkout.payment.card_last4}" if checkout.payment else "",
        "split": _split_sums(order),
        "refunds": [_refund_fields(checkout, refund) for refund in newest_refunds],
        "failed_refund": _failed_refund(checkout, newest_refunds),
        **_return_context(order, returned_amount),
        "notes": order.notes,
        **_bank_context(order),
        **_hold_and_advice(order),
        **_allowed_actions(order),
    }


def _bank_context(order: Order) -> dict[str, Any]:
    """Return the disputes, the actions outside the service, the bank's answer to a refund, and our support address."""
    outside_sums = outside_actions.outside_refund_sums(order)
    return {
        "bank_has": _refund_progress(order) if order.checkout.status == Status.REFUNDING else "",
        "disputes": [disputed.dispute_context(row) for row in order.disputes],
        "outside": outside_actions.open_actions(order),
        "outside_left": outside_sums,
        "pending_badge": outside_actions.REFUND_PENDING if outside_sums.get("on_its_way") else None,
        "support": settings.SUPPORT_EMAIL,
    }


def _is_money_elsewhere(order: Order, returned_amount: int) -> bool:
    """Return whether the money is neither held, nor at the shop, nor back on the card.

    This is true after a returned refund, and after a refund that was made or settled outside the service.
    """
    has_returned_refund = bool(returned_amount) and order.checkout.status == Status.REFUNDED
    is_settled = order.accounts is not None and any(card.settled for card in order.accounts.cards.values())
    return has_returned_refund or is_settled or bool(outside_actions.outside_refund_sums(order))


def _refund_progress(order: Order) -> str:
    """Return what the bank has done so far about the current refund, in words."""
    if order.has_refused_part:
        return "refused a part of it"
    parts = Operation.objects.filter(
        payment__checkout_uuid=order.checkout.pk, purpose=Operation.Purpose.REFUND_PART
    )
    states = set(parts.values_list("state", flat=True))
    return "received it" if states and states.isdisjoint(NOT_RECEIVED) else "not confirmed it yet"


def _returned_amount(order: Order) -> int:
    """Return how much money from returned refunds must still be refunded again, in minor units."""
    if order.accounts is None:
        return 0
    if order.checkout.status == Status.REFUNDED:
        return sum(max(0, card.borne) for card in order.accounts.cards.values())
    return sum(part.outstanding for part in order.accounts.parts.values())


def _return_context(order: Order, returned_amount: int) -> dict[str, Any]:
    """Return the context for returned refunds: the amount, a badge, and whether the merchant's balance includes it."""
    with_merchant = -sum(line.amount for line in order.postings if line.account == Posting.Account.MERCHANT)
    is_refunded = order.checkout.status == Status.REFUNDED
    return {
        "came_back": money.display(returned_amount, order.checkout.currency) if returned_amount else "",
        "returned_badge": badges.REFUND_RETURNED if returned_amount and is_refunded else None,
        "is_return_in_balance": is_refunded and with_merchant >= returned_amount > 0,
    }


def _allowed_actions(order: Order) -> dict[str, bool]:
    """Return which actions are possible now, and whether the page refreshes automatically."""
    is_disputed = bool(order.disputes) and refunds.dispute_blocking_refund(order.checkout) is not None
    actions = current_checkouts.available_actions(
        order.checkout, open_kind=order.open_kind, is_disputed=is_disputed
    )
    is_authorizing = order.checkout.status == Status.CREATED and order.open_kind is not None
    return {
        "can_cancel": "cancel" in actions,
        "can_refund": "refund" in actions,
        "is_live": is_authorizing or order.checkout.status in (Status.AUTHORIZED, Status.REFUNDING),
    }


def _hold_and_advice(order: Order) -> dict[str, Any]:
    """Return the time left to capture a held order, and advice about its capture or its event.

    Both are None for other orders. While a capture is open, the time left is None too. For a voided order,
    `has_endpoint` says whether the merchant has an endpoint now. It is true for all other orders.
    """
    is_being_captured = order.open_kind == Operation.Kind.CAPTURE
    hold = None if is_being_captured else _time_left(order.checkout)
    endpoints = Subscription.objects.filter(merchant=order.checkout.merchant_id, ended_at=None)
    has_endpoint = order.checkout.status != Status.VOIDED or endpoints.exists()
    return {"has_endpoint": has_endpoint, "hold": hold, "advice": endpoint_advice.advice_for(order)}


def _time_left(checkout: Checkout) -> dict[str, Any] | None:
    """Return the time left to capture a held order, in seconds and as minutes:seconds, else None."""
    if checkout.status != Status.AUTHORIZED or not (checkout.authorized_at and checkout.capture_before):
        return None
    seconds = max(0, round((checkout.capture_before - current_checkouts.read_at(checkout)).total_seconds()))
    span = round((checkout.capture_before - checkout.authorized_at).total_seconds())
    return {"left": seconds, "span": span, "clock": f"{seconds // 60}:{seconds % 60:02}"}


def _place_of_money(checkout: Checkout) -> str:
    """Return where the money is or is going: "hold", "shop" or "card", or "" if no money has moved."""
    if checkout.status == Status.AUTHORIZED:
        return "hold"
    if checkout.status == Status.CAPTURED:
        return "shop"
    return "card" if checkout.authorized_at else ""


def _split_sums(order: Order) -> dict[str, Any] | None:
    """Return the number of mates, how many have paid, and the sums of their shares. Without mates, return None.

    Names and phone numbers are left out.
    """
    if not order.checkout.has_mates:
        return None
    checkout, shares = order.checkout, order.shares
    reimbursed = sum(share.amount for share in shares if share.status == ShareStatus.REIMBURSED)
    reimbursed += sum(order.reimbursed_amounts.values())
    cards = order.accounts.cards.values() if order.accounts else ()
    disputed_amount = sum(card.disputed for card in cards if card.payment.kind == Payment.Kind.SHARE)
    return {
        "count": len(shares),
        "paid": sum(share.paid_at is not None for share in shares),
        "is_by_item": any(share.units for share in shares),
        "asked_amount": money.display(sum(share.amount for share in shares), checkout.currency),
        "back_amount": money.display(reimbursed, checkout.currency),
        "disputed_amount": money.display(disputed_amount, checkout.currency) if disputed_amount else "",
        **_pledge_sums(order),
    }


def _pledge_sums(order: Order) -> dict[str, Any]:
    """Return how many mates are in and the amount that is held on their cards, before the capture."""
    checkout = order.checkout
    asked = [share for share in order.shares if share.status not in NOT_ASKED]
    pledged = [share for share in asked if share.status == ShareStatus.PLEDGED]
    return {
        "is_open": checkout.status in PLEDGEABLE,
        "is_collecting": checkout.status == Status.CREATED and bool(asked),
        "pledged": len(pledged),
        "held_amount": money.display(sum(share.amount for share in pledged), checkout.currency),
    }


def _refund_fields(checkout: Checkout, refund: Refund) -> dict[str, Any]:
    return {
        "refund": refund,
        "badge": badges.REFUND[refund.status],
        "amount": money.display(refund.amount, checkout.currency),
        "why": reasons.reason_text(refund.failure_reason),
    }


def _failed_refund(checkout: Checkout, newest_refunds: list[Refund]) -> dict[str, Any] | None:
    """If the latest refund failed, return it with the reason, and whether a new refund can succeed."""
    latest = newest_refunds[0] if newest_refunds and checkout.status == Status.CAPTURED else None
    if latest is None or latest.status != Refund.Status.FAILED:
        return None
    return {
        "refund": latest,
        "amount": money.display(latest.amount, checkout.currency),
        "badge": badges.REFUND_FAILED,
        "why": reasons.reason_text(latest.failure_reason),
        "may_pass": reasons.can_succeed_again(latest.failure_reason),
    }
