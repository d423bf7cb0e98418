"""Decisions of the sandbox's bank about disputes, which no one else can make in a test.

Rule sandbox.disputes.
"""

from typing import Any

from checkout.models import Checkout
from hosted_page.sandbox import advancing
from payments import disputes
from payments.models import Dispute
from payments.providers.sandbox import client


class NotDisputed(Exception):
    """The checkout has no such open dispute."""


def decide_dispute(checkout: Checkout, wanted: dict[str, Any]) -> None:
    """Let the bank decide the named dispute, or the oldest open one, and record its decision.

    `wanted` has `result` and perhaps `dispute_uuid`. Raises NotDisputed.
    """
    found = disputes.open_disputes_of(checkout.pk)
    if named := wanted.get("dispute_uuid"):
        found = found.filter(pk=named)
    dispute = found.order_by("opened_at", "pk").first()
    if dispute is None:
        raise NotDisputed
    is_won = wanted["result"] == Dispute.Status.WON
    client.call_bank("decide", payment=dispute.payment_id, is_won=is_won, reference=dispute.reference)
    advancing.receive_from_bank(checkout.pk)
