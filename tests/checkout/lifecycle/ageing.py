"""Time that passes when a test says so."""

from django.db import connection
from django.db.models import DateTimeField, Model

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
    with connection.cursor() as cursor:
        cursor.execute(_PASS, {"seconds": seconds})


def _update(model: type[Model]) -> str:
    times = (field.column for field in model._meta.concrete_fields if isinstance(field, DateTimeField))
    earlier = (f"{name} = {name} - make_interval(secs => %(seconds)s)" for name in times)
    return f"{model._meta.db_table}_ AS (UPDATE {model._meta.db_table} SET {', '.join(earlier)})"


# One statement: a walk lets time pass some hundred times.
_PASS = f"WITH {', '.join(_update(model) for model in AGEING)} SELECT"
