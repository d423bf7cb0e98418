"""The portal's tables: people and their access, keys, the audit log, trials, e-mails, figures by hour."""

from portal.models.accounts import Invitation, LoginAttempt, Membership, PreviousPassword, Role, User
from portal.models.records import (
    ApiClient,
    AuditEntry,
    Canary,
    CheckoutNote,
    DeliveryHour,
    LastWrite,
    OutboundEmail,
    PaymentHour,
    Trial,
)

__all__ = [
    "ApiClient",
    "AuditEntry",
    "Canary",
    "CheckoutNote",
    "DeliveryHour",
    "Invitation",
    "LastWrite",
    "LoginAttempt",
    "Membership",
    "OutboundEmail",
    "PaymentHour",
    "PreviousPassword",
    "Role",
    "Trial",
    "User",
]
