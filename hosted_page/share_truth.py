"""The page of a pay link: where the share is, in words for the mate."""

from datetime import datetime
from uuid import UUID

from django.utils.html import format_html
from django.utils.translation import gettext as _

from checkout import transitions
from checkout.models import PaymentRequest
from checkout.states import ShareStatus, Status
from hosted_page import summary
from hosted_page.truth import Truth
from hosted_page.visit import Visit, asker
from payments import disputes, money, operations
from payments.models import Operation


def tell(visit: Visit, customer_uuid: UUID | None, now: datetime) -> Truth | None:
    """Return what is true of a share, None while it can be paid. Card details are for the mate alone."""
    share = visit.share
    if share is None:
        raise ValueError("A pay link leads to a share.")
    is_mate = customer_uuid is not None and customer_uuid == share.mate_id
    name, shop = asker(visit.checkout), visit.checkout.merchant.name
    match share.status:
        case ShareStatus.DRAFT:
            words = _(
                "{shop} has not confirmed {name}’s order yet. This link opens when it has. You are not charged."
            )
            return Truth("draft", _("Not open yet"), [words.format(shop=shop, name=name)], live=True)
        case ShareStatus.OPEN if visit.checkout.status == Status.CAPTURED:
            return _paused() if disputes.standing(visit.checkout.pk) else None
        case ShareStatus.OPEN:
            words = _(
                "{shop} is giving the money for this order back. There is nothing to pay. You are not charged."
            )
            return Truth("paused", _("Nothing to pay now"), [words.format(shop=shop)], live=True)
        case ShareStatus.PAYING:
            return _paying(visit, is_mate, now)
        case ShareStatus.PAID | ShareStatus.REIMBURSED if visit.checkout.status == Status.REFUNDING:
            words = _("{shop} is giving the whole order back. Your {amount} goes back to {card}.")
            words = words.format(shop=shop, amount=_amount(visit), card=_card(share, is_mate))
            return Truth("refunding", _("Your money is going back"), [words], place="shop", live=True)
        case ShareStatus.PAID | ShareStatus.REIMBURSED:
            return _paid(visit, share, is_mate)
        case ShareStatus.REFUNDED:
            words = _("{shop} gave back the whole order. Your {amount} went back to {card}.")
            words = words.format(shop=shop, amount=_amount(visit), card=_card(share, is_mate))
            note = _("Your bank may take a few days to show it.")
            return Truth("refunded", _("Your money is back"), [words], place="card", note=note)
        case ShareStatus.DECLINED:
            words = _("{name} is told. You are not charged.").format(name=name)
            return Truth("declined", _("You said no"), [words])
        case ShareStatus.EXPIRED:
            words = _("Nobody paid in time. You are not charged.")
            return Truth("link_ended", _("This link has ended"), [words])
        case _:
            words = _("{name} does not ask for this share any more. You are not charged.")
            return Truth("link_ended", _("There is nothing to pay"), [words.format(name=name)])


def _paused() -> Truth:
    """A card of the order is disputed: nobody is told whose."""
    words = _("A bank is looking into this order. There is nothing to pay now. You are not charged.")
    return Truth("paused", _("Nothing to pay now"), [words], live=True)


def _paying(visit: Visit, is_mate: bool, now: datetime) -> Truth:
    """The bank asks the mate, or says nothing, or the money is being taken."""
    found = operations.open_operation(visit.subject)
    if found is None or found.kind != Operation.Kind.AUTHORIZE:
        words = _("This takes a moment. Please don’t pay again.")
        return Truth("checking", _("Paying your share"), [words], live=True)
    if found.state == Operation.State.NEEDS_ACTION:
        words = _("Your bank wants to be sure that this is you. Nothing is taken until it has the answer.")
        if not is_mate:
            return Truth(
                "confirm", _("Somebody is paying this"), [_("Their bank is asking them.")], live=True
            )
        shown = Truth("confirm", _("Confirm with your bank"), [words], live=True)
        shown.action_url, shown.may_change_card = found.action_url, True
        return shown
    if transitions.may_use_another_card(found, now):
        words = _(
            "Nothing is taken. You need not wait: with another card, whatever this one holds is released."
        )
        return Truth("silent", _("Your bank has not answered"), [words], live=True, may_change_card=is_mate)
    return Truth("checking", _("Checking with your bank"), [_("Please don’t pay again.")], live=True)


def _paid(visit: Visit, share: PaymentRequest, is_mate: bool) -> Truth:
    name, zone = asker(visit.checkout), summary.zone_of(visit.checkout)
    words = format_html(
        _("<strong>{amount}</strong> was taken from {card}. It goes back to {name}’s card."),
        amount=_amount(visit),
        card=_card(share, is_mate),
        name=name,
    )
    receipt = [
        {"label": _("Order"), "value": visit.checkout.merchant_order_id},
        {"label": _("Your share"), "value": _amount(visit)},
        {"label": _("Paid"), "value": summary.full_time(share.paid_at or share.created_at, zone)},
        {"label": _("Card"), "value": summary.card_name(share.payment)},
    ]
    return Truth(
        "share_paid", _("Your share is paid"), [words], place="shop", receipt=receipt if is_mate else []
    )


def _amount(visit: Visit) -> str:
    return money.display(visit.amount, visit.checkout.currency)


def _card(share: PaymentRequest, is_mate: bool) -> str:
    return summary.card(share.payment, is_theirs=is_mate)
