"""What banks have given back of a split order for good, as its lead is told: of their own payment, and of mates'."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Sum
from django.utils.translation import gettext as _

from checkout.models import Checkout, PaymentRequest
from checkout.states import SHARE_PAID, ShareStatus
from hosted_page import summary
from payments import money
from payments.models import Dispute, Operation

PAID_ONCE = (*SHARE_PAID, ShareStatus.REFUNDED)


@dataclass(frozen=True)
class GivenBack:
    """`own` is how much of the lead's own payment, "" for nothing of it: who bears what is known then, as ever.

    `badge` says to whom, `at` when it was decided; `words` tell what of the mates' payments, and that nobody is asked
    any more.
    """

    own: str
    badge: str
    at: str
    words: str


def of(checkout: Checkout, shares: Sequence[PaymentRequest], found: Dispute) -> GivenBack:
    """Return it for an order of which a dispute was lost, `found`. Rule dispute.lost."""
    lost = Dispute.objects.filter(checkout_uuid=checkout.pk, status=Dispute.Status.LOST)
    amounts = dict(lost.values_list("payment").annotate(sum=Sum("amount")))
    own = amounts.get(checkout.payment_id, 0)
    told = [
        _of_mate(checkout, share, amounts[share.payment_id], is_borne=not own)
        for share in shares
        if share.payment_id in amounts
    ]
    if own and (too := _went_to_the_lead(shares)):
        words = _("Your card also got {amount} that mates had paid: settle that among you.")
        told.append(words.format(amount=money.for_payer(too, checkout.currency)))
    if any(share.status not in PAID_ONCE for share in shares):
        asked_no_more = _("Nobody is asked for a share any more.")
        told.append(asked_no_more if own else _("Nobody is asked any more: what is not paid stays with you."))
    return GivenBack(
        own=money.for_payer(own, checkout.currency) if own else "",
        badge=_("Given back") if own else _("Given back to a mate"),
        at=summary.day(found.closed_at, checkout),
        words=" ".join(told),
    )


def _went_to_the_lead(shares: Sequence[PaymentRequest]) -> int:
    """Return how much of mates' money is on the lead's card, in minor units."""
    paid = [share.pk for share in shares if share.status == ShareStatus.REIMBURSED]
    done = Operation.objects.filter(share_uuid__in=paid, state=Operation.State.SUCCEEDED)
    return done.aggregate(sum=Sum("amount"))["sum"] or 0


def _of_mate(checkout: Checkout, share: PaymentRequest, amount: int, *, is_borne: bool) -> str:
    """Return what a bank gave back to a mate's card; and if none did to the lead's, who bears it.

    Which mate is not said: the card may be another person's, and a bank's decision is between it and whose card it is.
    """
    words = _("A bank gave {amount} back to a mate’s card.")
    words = words.format(amount=money.for_payer(amount, checkout.currency))
    if not is_borne:
        return words
    bears = _("{shop} bears that, not you.").format(shop=checkout.merchant.name)
    if share.status == ShareStatus.REFUNDED:
        bears = _("That share stays with you.")
    return f"{words} {bears}"
