"""Reads the merchant's customer data for the payer's pages (rules prefill.*).

The page shows the number masked and offers to text a code to it. The name is used after the sign-in.
"""

from checkout.customers import prefills
from hosted_page.payment_target import PaymentTarget


def offered_number(target: PaymentTarget) -> str:
    """Return the number to which the page offers to text a code.

    Return "" if the merchant sent no number, or if the target is a share or cannot be paid.
    """
    prefill = prefills.prefill_of(target.checkout) if target.share is None and target.is_payable else None
    return prefill.phone if prefill else ""


def may_skip_code(target: PaymentTarget, phone: str) -> bool:
    """Return whether a browser that remembers this number can sign in here without a code.

    A code is needed only if the merchant sent a different number. Rule known.prefilled.
    """
    return offered_number(target) in ("", phone)


def prefilled_name(target: PaymentTarget) -> str:
    """Return the name that the merchant sent, if it belongs to the signed-in lead.

    Return "" if the merchant sent it with a different number, because anyone who has the order's address can
    sign in with their own number. Rule prefill.name.
    """
    lead_uuid, prefill = target.checkout.lead_id, prefills.prefill_of(target.checkout)
    if prefill is None or lead_uuid is None or not prefill.name:
        return ""
    return prefill.name if prefill.phone in ("", target.person(lead_uuid).phone) else ""
