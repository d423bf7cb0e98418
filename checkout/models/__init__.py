"""The tables of the order: people, checkouts, items, history, shares, refunds, API calls."""

from checkout.models.calls import CALLS, ApiCall, IdempotencyKey
from checkout.models.customers import Customer, MerchantCustomer
from checkout.models.lead_notifications import LeadNotification
from checkout.models.orders import Bill, Change, Checkout, CheckoutQuerySet, ColumnValue, Item
from checkout.models.prefills import Prefill
from checkout.models.proofs import ProofRun
from checkout.models.shares import NO_CLAIM, GroupLink, PaymentRequest, Refund, ReplacedLink

__all__ = [
    "CALLS",
    "NO_CLAIM",
    "ApiCall",
    "Bill",
    "Change",
    "Checkout",
    "CheckoutQuerySet",
    "ColumnValue",
    "Customer",
    "GroupLink",
    "IdempotencyKey",
    "Item",
    "LeadNotification",
    "MerchantCustomer",
    "PaymentRequest",
    "Prefill",
    "ProofRun",
    "Refund",
    "ReplacedLink",
]
