"""What a merchant has said of its customer, on the page: digits, then a code, then a name (rules prefill.*)."""

from checkout.customers import prefills
from hosted_page.payment_target import PaymentTarget


def number(target: PaymentTarget) -> str:
    """Return the number to which the page offers to text a code, "" if none was sent, or nobody may pay here."""
    found = prefills.of(target.checkout) if target.share is None and target.is_payable else None
    return found.phone if found else ""


def may_go_on(target: PaymentTarget, phone: str) -> bool:
    """Return whether a browser that is remembered by this number needs no code here. Rule known.prefilled."""
    return number(target) in ("", phone)


def name(target: PaymentTarget) -> str:
    """Return the name that was sent, for the lead, who has signed in; "" if it came with another number than theirs.

    Anybody who has the order's address may sign in by a number of their own. Rule prefill.name.
    """
    lead_uuid, found = target.checkout.lead_id, prefills.of(target.checkout)
    if found is None or lead_uuid is None or not found.name:
        return ""
    return found.name if found.phone in ("", target.person(lead_uuid).phone) else ""
