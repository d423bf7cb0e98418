"""A payment at the sandbox bank, with helpers that call the bank in the same process or over HTTP."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from payments import provider
from payments.models import Merchant, Operation, Payment
from payments.provider import CardUse, Outcome
from payments.providers.sandbox import client
from payments.providers.sandbox.models import Charge

PATIENCE = 5.0
DAWN = datetime(2020, 1, 1, tzinfo=UTC)
VISA, ASKING = "4242424242424242", "4000002500003155"
ACTS = ["authorize", "capture", "void", "refund"]
BOTH = [
    pytest.param(False, marks=pytest.mark.django_db, id="in process"),
    pytest.param(True, marks=[pytest.mark.django_db(transaction=True), pytest.mark.long], id="over HTTP"),
]


class Teller:
    """A payment at the bank with one card. The settings decide whether the bank is called over HTTP."""

    def __init__(self, number: str = VISA) -> None:
        merchant = Merchant(pk=uuid7())
        self.payment = Payment(
            pk=uuid7(), merchant=merchant, subject=uuid7(), checkout_uuid=uuid7(), amount=9000, currency="GBP"
        )
        self.token = str(client.call_bank("tokenise", subject=self.payment.subject, number=number))

    def operation(self, kind: str, key: UUID | None = None, amount: int = 9000) -> Operation:
        return Operation(pk=key or uuid7(), payment=self.payment, kind=kind, amount=amount)

    def ask(
        self, kind: str, key: UUID | None = None, amount: int = 9000, patience: float = PATIENCE
    ) -> Outcome:
        peer, operation = provider.current_provider(), self.operation(kind, key, amount)
        if kind == "authorize":
            return peer.authorize(operation, CardUse(self.token, "https://pay.example/back"), patience)
        act: Callable[[Operation, float], Outcome] = getattr(peer, kind)
        return act(operation, patience)

    def look_up(self, kind: str, key: UUID) -> Outcome:
        return provider.current_provider().look_up(self.operation(kind, key), PATIENCE)

    def in_dashboard(self, kind: str, amount: int = 9000, **how: bool) -> str:
        return str(
            client.call_bank("act_in_dashboard", kind=kind, payment=self.payment.pk, amount=amount, **how)
        )

    def later(self, seconds: int) -> None:
        client.call_bank("advance", payments=[self.payment.pk], seconds=seconds)

    def carry_out_preceding(self, kind: str) -> None:
        """Make the calls that must come before a call of this kind."""
        if kind != "authorize":
            self.ask("authorize")
        if kind == "refund":
            self.ask("capture")

    def charge(self) -> Charge:
        return Charge.objects.get(payment=self.payment.pk)
