"""The page of a pay link: where the share is, in words for the mate (look/LOOK.md 6)."""

from datetime import datetime
from uuid import UUID

from django.utils.html import format_html

from checkout import transitions
from checkout.models import PaymentRequest
from checkout.states import ShareStatus, Status
from hosted_page import summary
from hosted_page.truth import Truth
from hosted_page.visit import Visit, asker
from payments import money, operations
from payments.models import Operation

NOT_CHARGED = "You are not charged."


def tell(visit: Visit, customer_uuid: UUID | None, now: datetime) -> Truth | None:
    """Return what is true of a share, None while it can be paid. Card details are for the mate alone."""
    share = visit.share
    if share is None:
        raise ValueError("A pay link leads to a share.")
    is_mate = customer_uuid is not None and customer_uuid == share.mate_id
    name, shop = asker(visit.checkout), visit.checkout.merchant.name
    match share.status:
        case ShareStatus.DRAFT:
            words = f"{shop} has not confirmed {name}’s order yet. This link opens when it has."
            return Truth("draft", "Not open yet", [f"{words} {NOT_CHARGED}"], live=True)
        case ShareStatus.OPEN if visit.checkout.status == Status.CAPTURED:
            return None
        case ShareStatus.OPEN:
            words = f"{shop} is giving the money for this order back. There is nothing to pay."
            return Truth("paused", "Nothing to pay now", [f"{words} {NOT_CHARGED}"], live=True)
        case ShareStatus.PAYING:
            return _paying(visit, is_mate, now)
        case ShareStatus.PAID | ShareStatus.REIMBURSED:
            return _paid(visit, share, is_mate)
        case ShareStatus.REFUNDED:
            words = f"{shop} gave back the whole order. Your {_amount(visit)} went back to {_card(share, is_mate)}."
            note = "Your bank may take a few days to show it."
            return Truth("refunded", "Your money is back", [words], place="card", note=note)
        case ShareStatus.DECLINED:
            return Truth("declined", "You said no", [f"{name} is told. {NOT_CHARGED}"])
        case ShareStatus.EXPIRED:
            return Truth("link_ended", "This link has ended", [f"Nobody paid in time. {NOT_CHARGED}"])
        case _:
            words = f"{name} does not ask for this share any more. {NOT_CHARGED}"
            return Truth("link_ended", "There is nothing to pay", [words])


def _paying(visit: Visit, is_mate: bool, now: datetime) -> Truth:
    """The bank asks the mate, or says nothing, or the money is being taken."""
    found = operations.open_operation(visit.subject)
    if found is None or found.kind != Operation.Kind.AUTHORIZE:
        return Truth(
            "checking", "Paying your share", ["This takes a moment. Please don’t pay again."], live=True
        )
    if found.state == Operation.State.NEEDS_ACTION:
        words = "Your bank wants to be sure that this is you. Nothing is taken until it has the answer."
        if not is_mate:
            return Truth("confirm", "Somebody is paying this", ["Their bank is asking them."], live=True)
        shown = Truth("confirm", "Confirm with your bank", [words], live=True)
        shown.action_url, shown.may_change_card = found.action_url, True
        return shown
    if transitions.may_use_another_card(found, now):
        words = "Nothing is taken. You need not wait: with another card, whatever this one holds is released."
        return Truth("silent", "Your bank has not answered", [words], live=True, may_change_card=is_mate)
    return Truth("checking", "Checking with your bank", ["Please don’t pay again."], live=True)


def _paid(visit: Visit, share: PaymentRequest, is_mate: bool) -> Truth:
    name, zone = asker(visit.checkout), summary.zone_of(visit.checkout)
    words = format_html(
        "<strong>{}</strong> was taken from {}. It goes back to {}’s card.",
        _amount(visit),
        _card(share, is_mate),
        name,
    )
    receipt = [
        {"label": "Order", "value": visit.checkout.merchant_order_id},
        {"label": "Your share", "value": _amount(visit)},
        {"label": "Paid", "value": summary.full_time(share.paid_at or share.created_at, zone)},
        {"label": "Card", "value": _card(share, is_mate).removeprefix("your ")},
    ]
    return Truth(
        "share_paid", "Your share is paid", [words], place="shop", receipt=receipt if is_mate else []
    )


def _amount(visit: Visit) -> str:
    return money.display(visit.amount, visit.checkout.currency)


def _card(share: PaymentRequest, is_mate: bool) -> str:
    payment = share.payment
    if payment is None or not is_mate:
        return "the card"
    return f"your {payment.card_brand} ending {payment.card_last4}"
