"""Lets the sandbox bank decide disputes. A test must request each decision, because no real bank decides.

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


def decide_dispute(checkout: Checkout, body: dict[str, Any]) -> None:
    """Let the bank decide a dispute, and record its decision.

    Without a named dispute, the oldest open one is decided. `body` has `result` and, if a dispute is named,
    `dispute_uuid`. Raises NotDisputed.
    """
    open_disputes = disputes.open_disputes_of(checkout.pk)
    if dispute_uuid := body.get("dispute_uuid"):
        open_disputes = open_disputes.filter(pk=dispute_uuid)
    dispute = open_disputes.order_by("opened_at", "pk").first()
    if dispute is None:
        raise NotDisputed
    is_won = body["result"] == Dispute.Status.WON
    client.call_bank("decide", payment=dispute.payment_id, is_won=is_won, reference=dispute.reference)
    advancing.receive_from_bank(checkout.pk)
