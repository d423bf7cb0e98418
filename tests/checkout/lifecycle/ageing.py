"""Time that passes when a test says so."""

from datetime import timedelta

from django.db.models import DateTimeField, F

from checkout.models import Checkout, PaymentRequest, Refund
from payments.models import Discrepancy, Dispute, Inquiry, Operation, Payment, Reconciled
from payments.providers.sandbox import models as bank
from webhooks.models import Delivery, Event

AGEING = (
    *(Checkout, PaymentRequest, Refund, Payment, Operation, Discrepancy, Event, Delivery),
    *(Dispute, Inquiry, Reconciled, bank.Charge, bank.Call, bank.Dispute, bank.BankNotification),
)


def let_pass(seconds: float) -> None:
    """Make all that the product and the bank know this much older: the database's clock cannot be put forward.

    The history and the ledger are append-only and stay as they are.
    """
    for model in AGEING:
        times = [field.name for field in model._meta.concrete_fields if isinstance(field, DateTimeField)]
        model._default_manager.update(**{name: F(name) - timedelta(seconds=seconds) for name in times})
