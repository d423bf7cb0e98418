"""Texts for the lead about disputes, and about money that banks returned to the lead, to mates or to the shop."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from checkout.models import Checkout, PaymentRequest
from checkout.settling.cards import Accounts
from checkout.states import SHARE_PAID, ShareStatus
from hosted_page import summary
from hosted_page.status.shared_cells import SENT_AGAIN
from payments import disputes, money
from payments.models import Dispute

EVER_PAID = (*SHARE_PAID, ShareStatus.REFUNDED)


@dataclass(frozen=True)
class ReturnedMoney:
    """Texts for the lead about the money that lost disputes returned.

    - `own`: the part of the lead's own payment that was returned, or "" if only mates' payments were returned
    - `from_mates`: the part of the mates' paid shares that was returned, in minor units
    - `badge`: a short label that says who got the money
    - `at`: when the dispute was closed
    - `words`: sentences that say how much of the mates' payments was returned, and that mates are no longer
      asked to pay
    """

    own: str
    from_mates: int
    badge: str
    at: str
    words: str


def review_sentence(checkout: Checkout, *, has_mate_paid: bool) -> str:
    """Return the sentence about an open dispute.

    If a mate has paid too, the sentence does not say whose payment is disputed (rule share.pauses).
    """
    if has_mate_paid:
        return _("A bank is reviewing a payment for this order. You don’t need to do anything.")
    words = _("Your bank is reviewing your payment of {amount}. You don’t need to do anything.")
    return words.format(amount=money.display_for_payer(checkout.amount, checkout.currency))


def sent_back_sentence(accounts: Accounts, share_ids: Collection[str]) -> str:
    """Return the sentences about the reimbursements of these shares, which the lead's bank sent back."""
    amount = sum(accounts.owed_to_lead(share) for share in accounts.shares if str(share.pk) in share_ids)
    words = _("Your bank sent back {amount} of your mates’ payments.").format(
        amount=money.display_for_payer(amount, accounts.checkout.currency)
    )
    return f"{words} {SENT_AGAIN}"


def returned_money(
    checkout: Checkout, shares: Sequence[PaymentRequest], dispute: Dispute, accounts: Accounts | None
) -> ReturnedMoney:
    """Return the texts about returned money for an order. `dispute` is its lost dispute. Rule dispute.lost."""
    amounts = {
        payment: loss.amount for payment, loss in disputes.lost_amounts_by_payment(checkout.pk).items()
    }
    own = amounts.get(checkout.payment_id, 0) if checkout.payment_id else 0
    sentences = [
        _mate_sentence(checkout, share, amounts[share.payment_id], is_borne=not own)
        for share in shares
        if share.payment_id and share.payment_id in amounts
    ]
    if own and (reimbursed := _reimbursements_kept(shares, accounts)):
        sentences.append(_settlement_sentence(checkout, reimbursed))
    if any(share.status not in EVER_PAID for share in shares):
        not_asked = _("Your mates are no longer asked to pay.")
        lead_covers = _("Your mates are no longer asked to pay. You cover any share that is not paid.")
        sentences.append(not_asked if own else lead_covers)
    return ReturnedMoney(
        own=money.display_for_payer(own, checkout.currency) if own else "",
        from_mates=_returned_to_mates(shares, amounts),
        badge=_("Returned") if own else _("Returned to a mate"),
        at=summary.day_with_time(dispute.closed_at, checkout),
        words=format_html_join(" ", "{}", ((sentence,) for sentence in sentences)),
    )


def _returned_to_mates(shares: Sequence[PaymentRequest], amounts: Mapping[UUID, int]) -> int:
    """Return how much of the mates' paid shares banks have returned, in minor units."""
    paid = [share for share in shares if share.status in SHARE_PAID and share.payment_id]
    return sum(min(share.amount, amounts.get(share.payment_id, 0)) for share in paid if share.payment_id)


def _reimbursements_kept(
    shares: Sequence[PaymentRequest], accounts: Accounts | None
) -> dict[PaymentRequest, int]:
    """Map each paid share to the part of its reimbursement that is still on the lead's card.

    Shares with an amount of 0 are left out.
    """
    if accounts is None:
        return {}
    parts = {share: accounts.reimbursement(share)[1] for share in shares if share.status in SHARE_PAID}
    amounts = {share: part.refunded - part.returned for share, part in parts.items()}
    return {share: amount for share, amount in amounts.items() if amount > 0}


def _settlement_sentence(checkout: Checkout, reimbursed: Mapping[PaymentRequest, int]) -> str:
    """Return the sentence that says how much of the mates' money is also on the lead's card.

    The sentence asks the lead to settle that amount with these mates.
    """
    name = next(iter(reimbursed)).shown_name if len(reimbursed) == 1 else ""
    words = _(
        "Your card also received <strong>{amount}</strong> from your mates. Please settle this with them."
    )
    if name:
        words = _(
            "Your card also received <strong>{amount}</strong> from <bdi>{name}</bdi>. Please settle this with them."
        )
    return format_html(
        words, amount=money.display_for_payer(sum(reimbursed.values()), checkout.currency), name=name
    )


def _mate_sentence(checkout: Checkout, share: PaymentRequest, amount: int, *, is_borne: bool) -> str:
    """Return the sentence about the amount that a bank returned to a mate's card.

    If the lead's bank returned no money (`is_borne`), the sentence also says who bears the amount. The
    sentence does not name the mate, because the card might be another person's, and a bank's decision
    concerns only the bank and the card holder.
    """
    words = _("A bank has returned {amount} to a mate’s card.")
    words = words.format(amount=money.display_for_payer(amount, checkout.currency))
    if not is_borne:
        return words
    bears = _("{shop} covers this amount, not you.").format(shop=checkout.merchant.name)
    if share.status == ShareStatus.REFUNDED:
        bears = _("You cover that share.")
    return f"{words} {bears}"
