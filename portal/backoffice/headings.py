"""The headings of records' pages. They name the record, its order and its amount, without ids."""

import re
from collections.abc import Callable
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from payments import money
from payments.models import Discrepancy
from portal.backoffice import cases, records
from portal.backoffice.record_heads import webhooks
from portal.mail import mail_kinds
from portal.trials import cases as cases_of_checklist

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def heading_of(row: Model, request: HttpRequest) -> str:
    """Return the heading of a row's page in words."""
    if isinstance(row, Discrepancy):
        discrepancy = cases.with_order_and_deadline(Discrepancy.objects.filter(pk=row.pk)).get()
        case = cases.build_case(discrepancy, discrepancy.created_at, None)
        return f"{case.headline}, {case.order_id}" if case.order_id else case.headline
    label = row._meta.label_lower
    if label in HEADINGS:
        return HEADINGS[label](row)
    return str(records.build_rows([row], request)[0].heading) if label in records.DESCRIPTIONS else str(row)


def _of_call(row: Any) -> str:
    path = UUID.sub("…", row.path.removeprefix("/api/").removeprefix("merchant/v1/"))
    return f"{row.method} {path}, answer {row.status}"


def _of_share(row: Any) -> str:
    amount = money.display(row.amount, row.checkout.currency)
    return f"Share {row.position} of {amount}, {row.checkout.merchant_order_id}"


def _of_hour(what: str) -> Callable[[Any], str]:
    return lambda row: f"{what}, {row.hour.day} {row.hour:%b %Y %H:%M} to {row.hour:%H}:59"


HEADINGS: dict[str, Callable[[Any], str]] = {
    "admin.logentry": lambda row: f"{row.object_repr}: {row.get_change_message()}".removesuffix("."),
    "bank.banknotification": lambda row: (
        f"Notification of a {'dispute' if row.dispute_id else row.call.kind}: {row.verdict}"
    ),
    "bank.call": lambda row: f"The sandbox bank’s answer: {row.kind} {row.verdict}",
    "bank.dispute": lambda row: f"Dispute of {money.display(row.amount, row.charge.currency)} at the bank",
    "checkout.apicall": _of_call,
    "checkout.bill": lambda row: f"Bill of {row.checkout.merchant_order_id}",
    "checkout.change": lambda row: f"{row}, {row.checkout.merchant_order_id}",
    "checkout.customer": lambda row: f"Customer {row}",
    "checkout.idempotencykey": lambda row: f"Idempotency key of {row.merchant}",
    "checkout.leadnotification": lambda row: f"Text to a lead: {row}",
    "checkout.merchantcustomer": lambda row: f"Customer of {row.merchant}",
    "checkout.paymentrequest": _of_share,
    "checkout.prefill": lambda row: f"Prefilled customer data of {row.checkout.merchant_order_id}",
    "hosted_page.optintext": lambda row: f"Opt-in wording of {row.merchant}, version {row.version}",
    "hosted_page.smsmessage": lambda row: f"Text: {row}",
    "mfa.authenticator": lambda row: f"Second factor of {row.user}",
    "oauth2_provider.accesstoken": lambda row: f"Access token of {row.application}",
    "payments.databasemark": lambda row: "Server of the database",
    "payments.inquiry": lambda row: f"Next look-up of the payment {row.payment}",
    "payments.ledgerclosing": lambda row: "Closed days of the ledger",
    "payments.ledgersum": lambda row: "Sum of closed days",
    "portal.apiclient": lambda row: f"Key “{row.name}” of {row.merchant}",
    "portal.canary": lambda row: "Canary",
    "portal.checkoutnote": lambda row: f"Note of {row.merchant}",
    "portal.deliveryhour": _of_hour("Deliveries"),
    "portal.outboundemail": lambda row: f"Email: {mail_kinds.kind_in_words(row.kind)}",
    "portal.paymenthour": _of_hour("Payments"),
    "portal.trial": lambda row: f"Case “{cases_of_checklist.title_of(row.case)}” of {row.merchant}",
    "portal.previouspassword": lambda row: f"Former password of {row.user}",
    "usersessions.usersession": lambda row: f"Session of {row.user}",
    "webhooks.attempt": webhooks.heading_of_attempt,
    "webhooks.delivery": webhooks.heading_of_delivery,
    "webhooks.endpoint": lambda row: f"Endpoint of {row.subscription.merchant}",
    "webhooks.event": webhooks.heading_of_event,
    "webhooks.subscription": lambda row: f"Subscription of {row.merchant}",
}
