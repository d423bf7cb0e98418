"""The tables of merchants and their money."""

from payments.models.books import BalanceEntry, Discrepancy, LastBackup, Posting, Reconciled
from payments.models.merchants import DatabaseMark, FormerAccount, Logo, Merchant, Switch
from payments.models.movements import Booking, Movement
from payments.models.payments import Dispute, Inquiry, Operation, Payment
from payments.models.sums import LedgerClosing, LedgerSum

__all__ = [
    "BalanceEntry",
    "Booking",
    "DatabaseMark",
    "Discrepancy",
    "Dispute",
    "FormerAccount",
    "Inquiry",
    "LastBackup",
    "LedgerClosing",
    "LedgerSum",
    "Logo",
    "Merchant",
    "Movement",
    "Operation",
    "Payment",
    "Posting",
    "Reconciled",
    "Switch",
]
