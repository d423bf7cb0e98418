"""The notice for a mate whose pledge has ended: the reason, and that the hold on the mate's card is released.

Rules pledge.ends, pledge.withdraw, pledge.captured.
"""

from django.utils.translation import gettext as _

from checkout import pledges
from checkout.models import Checkout, PaymentRequest
from hosted_page.payment_target import lead_name
from payments import money
from payments.models import Payment


def words_of(checkout: Checkout, share: PaymentRequest, hold: Payment) -> dict[str, str]:
    """Return the title and the words of the notice for the mate whose `hold` for a share has ended."""
    held_amount, share_amount = (
        money.display_for_payer(amount, checkout.currency) for amount in (hold.amount, share.amount)
    )
    no_longer_in = _("You are no longer in.")
    released = _("You have not been charged. The hold of {amount} on your card is released.").format(
        amount=held_amount
    )
    if hold.decline_reason == pledges.WITHDRAWN:
        return {"title": _("You have withdrawn"), "words": released}
    if hold.decline_reason == pledges.ANOTHER_CARD:
        return {"title": _("Use another card"), "words": released}
    if hold.decline_reason == pledges.NOT_TAKEN:
        again = _("Try again, or use another card.")
        return {"title": _("Your share could not be taken"), "words": f"{released} {again}"}
    if hold.decline_reason == pledges.SAME_CARD:
        title = _("{name} paid with the same card").format(name=lead_name(checkout))
        another = _("Use another card for your share.")
        return {"title": title, "words": f"{released} {another}"}
    if share.replaced_at is not None:
        title = _("{name} changed the split").format(name=lead_name(checkout))
        again = _("If you are still in, take your share again.")
        return {"title": title, "words": f"{no_longer_in} {released} {again}"}
    if held_amount == share_amount:
        return {"title": _("You are no longer in"), "words": released}
    title = _("{name} changed your share").format(name=lead_name(checkout))
    changed = _("It was {was} and is now {now}.").format(was=held_amount, now=share_amount)
    return {"title": title, "words": f"{changed} {no_longer_in} {released}"}
