"""The status page of a share, in words for the mate."""

from datetime import datetime
from uuid import UUID

from django.utils.html import format_html
from django.utils.translation import gettext as _

from checkout import given_up_cards, settling
from checkout.models import Checkout, PaymentRequest
from checkout.settling.cards import Accounts
from checkout.states import ShareStatus, Status
from hosted_page import summary
from hosted_page.payment_target import PaymentTarget, lead_name
from hosted_page.status import receipt, refund
from hosted_page.status.order_status import (
    PageStatus,
    asked_amount_sentence,
    checking_status,
    returned_refund_status,
    show_refund,
    silent_status,
)
from hosted_page.status.receipt import Receipt
from payments import disputes, money, open_operations
from payments.models import Operation


def share_status_of(target: PaymentTarget, customer_uuid: UUID | None, now: datetime) -> PageStatus | None:
    """Return the current status of a share, None while it can be paid.

    Only the share's mate sees card details.
    """
    share = target.share
    if share is None:
        raise ValueError("A pay link leads to a share.")
    is_mate = customer_uuid is not None and customer_uuid == share.mate_id
    facts = _sentence_values(target, share, is_mate)
    match share.status:
        case ShareStatus.DRAFT:
            words = _(
                "{shop} has not confirmed {name}’s order yet. This link opens when the order is confirmed."
                " You have not been charged."
            )
            return PageStatus("draft", _("Not open yet"), [words.format(**facts)], live=True)
        case ShareStatus.OPEN if target.checkout.status == Status.CAPTURED:
            return _paused_status() if disputes.blocking_dispute(target.checkout.pk) else None
        case ShareStatus.OPEN:
            words = _("{shop} is refunding this order, so you don’t need to pay.")
            return _not_payable_status(words.format(**facts))
        case ShareStatus.PAYING:
            return _paying_status(target, is_mate, now)
        case ShareStatus.PAID | ShareStatus.REIMBURSED | ShareStatus.REFUNDED:
            return _paid_status(target, share, facts, is_mate)
        case _:
            return _ended_status(target, share, facts)


def _ended_status(target: PaymentTarget, share: PaymentRequest, facts: dict[str, str]) -> PageStatus:
    """Return the status of a share that ended unpaid."""
    match share.status:
        case ShareStatus.DECLINED:
            words = _("You have not been charged. You don’t need to do anything else.")
            # If the lead does not cover the share, the lead's page does not show the shares.
            if _is_covered_by_lead(target.checkout):
                words = _("You have not been charged. {name} can see that you said no.").format(**facts)
            return PageStatus("declined", _("You said no"), [words])
        case ShareStatus.EXPIRED:
            until = summary.day_with_time(share.expires_at, target.checkout)
            told = [_("You have not been charged. You don’t need to do anything else.")]
            told.append(_("{name} asked you for <strong>{amount}</strong> until {until}."))
            if _is_covered_by_lead(target.checkout):
                told.append(_("{name} covers your share."))
            words = format_html(" ".join(told), until=until, **facts)
            return PageStatus("link_ended", _("This link has expired"), [words])
        case _:
            return _no_longer_asked_status(target, facts)


def _no_longer_asked_status(target: PaymentTarget, facts: dict[str, str]) -> PageStatus:
    """Return the status of a share that the lead cancelled, or that ended with its order."""
    told = [_("You have not been charged. You don’t need to do anything else.")]
    is_captured = target.checkout.status == Status.CAPTURED
    if is_captured and settling.is_refunded_by_others(target.checkout.pk):
        asks = _("{shop} has refunded a payment for this order. Ask {name} whether the order is still valid.")
        told = [_("You have not been charged."), asks]
        heading = _("You are no longer asked to pay")
    elif disputes.has_lost_dispute(target.checkout.pk):
        asks = _("A bank has returned a payment for this order. Ask {name} whether the order is still valid.")
        told = [_("You have not been charged."), asks]
        heading = _("You are no longer asked to pay")
    else:
        heading = _("{name} is no longer asking for this").format(**facts)
    if _is_covered_by_lead(target.checkout):
        told.append(_("{name} covers your share of <strong>{amount}</strong>."))
    return PageStatus("link_ended", heading, [format_html(" ".join(told), **facts)])


def _is_covered_by_lead(checkout: Checkout) -> bool:
    """Return whether the lead covers a share that is unpaid.

    This is true only if the order is captured, no dispute is open or lost, and no part of the order was
    refunded directly at the provider.
    """
    if checkout.status != Status.CAPTURED or disputes.blocking_dispute(checkout.pk):
        return False
    return not settling.is_refunded_by_others(checkout.pk)


def _paused_status() -> PageStatus:
    """Return the status while a dispute is open. It does not say whose card is disputed."""
    words = _(
        "A bank is reviewing a payment for this order. This can take weeks. If the bank confirms the"
        " payment, this link works again. If not, the link ends."
    )
    return _not_payable_status(words)


def _not_payable_status(words: str) -> PageStatus:
    """Return the status of an open share that cannot be paid now. Its mate has not been charged."""
    safe = _("You have not been charged.")
    return PageStatus("paused", _("Nothing to pay now"), [f"{safe} {words}"], live=True)


def _paying_status(target: PaymentTarget, is_mate: bool, now: datetime) -> PageStatus:
    """Return the status of a share that is being paid.

    Either the mate has to confirm with the bank, or the bank has not answered, or the money is being taken.
    """
    found = open_operations.open_operation(target.subject)
    if found is None or found.kind != Operation.Kind.AUTHORIZE:
        words, title = _("This takes a moment."), _("Please don’t pay again.")
        return PageStatus("checking", _("Paying your share"), [words], title=title, live=True)
    if found.state == Operation.State.NEEDS_ACTION:
        words = _("Your bank wants to be sure that this is you. No money is taken until you confirm.")
        if not is_mate:
            return PageStatus(
                "confirm",
                _("Someone is paying this"),
                [_("The payer’s bank is asking them to confirm the payment.")],
                live=True,
            )
        shown = PageStatus("confirm", _("Confirm with your bank"), [words], live=True)
        shown.action_url, shown.may_change_card = found.action_url, True
        return shown
    if given_up_cards.is_another_card_allowed(found, now):
        return silent_status(is_mate)
    amount = money.display_for_payer(target.amount, target.checkout.currency)
    return checking_status(asked_amount_sentence(amount, found.payment, is_theirs=is_mate), is_theirs=is_mate)


def _paid_status(
    target: PaymentTarget, share: PaymentRequest, facts: dict[str, str], is_mate: bool
) -> PageStatus:
    """Return the status of a paid share: its money is taken, being refunded, or refunded."""
    accounts, is_refunded = (
        settling.read_accounts_unlocked(target.checkout),
        share.status == ShareStatus.REFUNDED,
    )
    lost = disputes.lost_amounts_by_payment(target.checkout.pk) if accounts else {}
    back = lost[share.payment_id].amount if share.payment_id in lost else 0
    is_by_bank = back > 0 and (target.checkout.status == Status.CAPTURED or back >= share.amount)
    if is_by_bank and (is_mate or is_refunded):
        return _dispute_return_status(target, share, back, is_mate)
    if not is_refunded and target.checkout.status != Status.REFUNDING:
        return _captured_status(target, share, facts, accounts, is_mate)
    card = accounts.cards.get(share.payment_id) if accounts and share.payment_id else None
    is_away = is_refunded and card is not None and card.borne > 0
    shown = returned_refund_status(facts) if is_away else _refunded_status(facts, is_settled=is_refunded)
    if is_mate and not is_away:
        show_refund(shown, refund.bill_of_mate(target.checkout, share))
    if is_mate:
        shown.receipt = _share_receipt(target, share)
    return shown


def _refunded_status(facts: dict[str, str], *, is_settled: bool) -> PageStatus:
    if is_settled:
        words = _("{shop} refunded the whole order. Your bank may take a few days to show it on {card}.")
        return PageStatus("refunded", _("Refunded"), [words.format(**facts)])
    words = _("{shop} is refunding the whole order. Your <strong>{amount}</strong> goes back to {card}.")
    return PageStatus("refunding", _("Your money is going back"), [format_html(words, **facts)], live=True)


def _dispute_return_status(
    target: PaymentTarget, share: PaymentRequest, back: int, is_mate: bool
) -> PageStatus:
    """Return the status of a share whose mate got money back from their bank.

    If the viewer is not this mate, the page does not say whose payment was returned.
    """
    nothing = _("No more payments are needed.")
    if not is_mate:
        words = _("A bank has returned a payment for this order.")
        return PageStatus("link_ended", _("Nothing to pay now"), [f"{words} {nothing}"])
    amount = money.display_for_payer(back, target.checkout.currency)
    words = _("You won’t be asked for your share again.")
    heading = _("Your bank gave you {amount} back").format(amount=amount)
    return PageStatus("refunded", heading, [words], receipt=_share_receipt(target, share))


def _captured_status(
    target: PaymentTarget,
    share: PaymentRequest,
    facts: dict[str, str],
    accounts: Accounts | None,
    is_mate: bool,
) -> PageStatus:
    """Return the status of a paid share. Its amount is going to the lead's card, or has arrived there."""
    is_owed = accounts is not None and accounts.owed_to_lead(share) > 0
    is_there = share.status == ShareStatus.REIMBURSED and not is_owed
    words = _("<strong>{amount}</strong> was taken from {card}. It goes back to {name}’s card.")
    if is_there:
        words = _("<strong>{amount}</strong> was taken from {card}. It is back on {name}’s card.")
    told = [format_html(words, **facts), _("You can close this page.")]
    shown = PageStatus("share_paid", _("Your share is paid"), told, place="shop")
    shown.is_on_its_way = not is_there
    if is_mate:
        shown.receipt = _share_receipt(target, share)
    return shown


def _share_receipt(target: PaymentTarget, share: PaymentRequest) -> Receipt:
    return receipt.of_share(target, share.paid_at or share.created_at, share.payment)


def _sentence_values(target: PaymentTarget, share: PaymentRequest, is_mate: bool) -> dict[str, str]:
    """Return the values for the sentences about a share."""
    return {
        "shop": target.checkout.merchant.name,
        "name": lead_name(target.checkout),
        "amount": money.display_for_payer(target.amount, target.checkout.currency),
        "card": summary.card_in_words(share.payment, is_theirs=is_mate),
    }
