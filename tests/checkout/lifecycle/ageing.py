"""Simulates the passage of time: it moves the times of stored records into the past."""

from collections.abc import Iterable
from datetime import timedelta

from django.db import connection
from django.db.models import DateTimeField, Model

from checkout.models import Checkout, PaymentRequest, Refund
from payments.models import Discrepancy, Dispute, Inquiry, Operation, Payment, Reconciled
from payments.providers.sandbox import models as bank
from tests.restoring import Backup
from webhooks.models import Delivery, Event

AGEING = (
    *(Checkout, PaymentRequest, Refund, Payment, Operation, Discrepancy, Event, Delivery),
    *(Dispute, Inquiry, Reconciled, bank.Charge, bank.Call, bank.Dispute, bank.BankNotification),
)


def let_pass(seconds: float, backup: Backup | None = None) -> None:
    """Make the records of the service and the bank older, because the test cannot change the database's clock.

    The records in a backup get older too. The history and the ledger do not change, because they are append-only.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PASS, {"seconds": seconds})
        if backup is not None:
            cursor.execute(_PASS_OF_BACKUP, {"seconds": seconds})
            backup.made_at -= timedelta(seconds=seconds)


def _statement(models: Iterable[type[Model]], prefix: str = "") -> str:
    """Return one statement for all models, because a test run lets time pass hundreds of times."""
    return f"WITH {', '.join(_update(model, prefix) for model in models)} SELECT"


def _update(model: type[Model], prefix: str) -> str:
    table = prefix + model._meta.db_table
    times = (field.column for field in model._meta.concrete_fields if isinstance(field, DateTimeField))
    earlier = (f"{name} = {name} - make_interval(secs => %(seconds)s)" for name in times)
    return f"{table}_ AS (UPDATE {table} SET {', '.join(earlier)})"


_PASS = _statement(AGEING)
_OF_MONEY = (model for model in AGEING if model._meta.app_label in ("checkout", "payments"))
_PASS_OF_BACKUP = _statement(_OF_MONEY, "restored_")
