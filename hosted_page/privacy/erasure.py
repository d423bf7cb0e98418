"""Erases a person: deletes their names, numbers and e-mail addresses.

Rows that accounting needs are kept, but they no longer identify anyone. Rules privacy.erase, privacy.open,
privacy.again.
"""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from django.conf import settings
from django.db import transaction

from checkout.group import pledging
from checkout.models import Customer, MerchantCustomer, PaymentRequest, Prefill
from checkout.states import ShareStatus, Status
from config.lib import batches, clock, crypto
from config.lib.database import queries
from hosted_page import statements
from hosted_page.models import CardTry, KnownBrowser, OptIn, PayerSignIn, SignInCode, SmsMessage
from hosted_page.opt_in import consent
from hosted_page.privacy import data_subjects
from hosted_page.privacy.data_subjects import Person
from hosted_page.sms import outbox
from hosted_page.steps import declines
from payments.discrepancies import kinds
from payments.models import Discrepancy, Dispute, Operation

OPEN_ORDERS = (Status.CREATED, Status.AUTHORIZED, Status.REFUNDING)
OPEN_SHARES = (ShareStatus.OPEN, ShareStatus.PAYING, ShareStatus.PAID)

# Kinds of discrepancies about refunds that an operator might have to pay in another way.
UNPAID_REFUNDS = (kinds.REFUND_RETURNED, kinds.REFUND_PART_FAILED, kinds.SHARE_NOT_REIMBURSED)

NEVER = datetime.min.replace(tzinfo=UTC)


class StillNeeded(Exception):
    """The person cannot be erased, because an open order or case needs their number or name.

    Each item of `reasons` names one obstacle.
    """

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def erase(person: Person, *, is_recorded: bool = True, unless_ordered_since: datetime | None = None) -> None:
    """Erase a person. If `is_recorded` is true, also record the erasure in a file outside the database.

    Raises StillNeeded if the person has an open order or case, or has placed an order since
    `unless_ordered_since`. A later sign-in with the same number creates a new person.
    """
    with transaction.atomic(durable=True):
        if person.customer is not None:
            Customer.objects.select_for_update(no_key=True).get(pk=person.customer.pk)
            known_as = MerchantCustomer.objects.filter(customer=person.customer)
            person = replace(person, known_as=[*person.known_as, *known_as])
        if reasons := [*_open_reasons(person), *_newer_order_reasons(person, unless_ordered_since)]:
            raise StillNeeded(reasons)
        if person.customer is not None:
            pledging.end_of_mate(person.customer.pk)
        now = clock.now()
        marks = _marks(person)
        _delete_personal_data(person, now)
        _empty_opt_ins(person)
        consent.erase_events(person.opt_ins)
        if is_recorded:
            _record_marks(marks, now)


def erase_recorded_again() -> Iterator[tuple[str, list[str]]]:
    """After a restore, erase again all people whose erasure was recorded.

    For each recorded person who is in the database, yield the mark in the file and the reasons that prevent
    the erasure. If the person was erased, the list of reasons is empty. A person whose data is newer than the
    recorded erasure is not erased.
    """
    marks = _recorded_marks()
    for customer in batches.iterate(Customer.objects.filter(erased_at=None).exclude(phone=None)):
        mark, erased_at = _newest_mark(marks, "phone", customer.phone or "")
        if customer.created_at <= erased_at:
            yield mark, _erase_again(data_subjects.of_customer(customer.pk))
    for merchant_customer in batches.iterate(MerchantCustomer.objects.filter(customer=None)):
        opt_ins = (
            OptIn.objects.filter(person=merchant_customer).exclude(email_digest="").order_by("-opted_in_at")
        )
        newest_opt_in = opt_ins.first()
        if newest_opt_in is None:
            continue
        mark, erased_at = _newest_mark(marks, "e-mail", newest_opt_in.email.lower())
        if newest_opt_in.opted_in_at <= erased_at:
            yield mark, _erase_again(Person(None, [merchant_customer]))
    yield from _erase_numbers_again(marks)


def _erase_numbers_again(marks: dict[str, datetime]) -> Iterator[tuple[str, list[str]]]:
    """Erase again the numbers of people who never signed in.

    A merchant sent these numbers, or a lead entered them for a share.
    """
    prefills = Prefill.objects.exclude(phone="").select_related("checkout")
    shares = PaymentRequest.every.exclude(phone="").select_related("checkout")
    for row in chain[Prefill | PaymentRequest](batches.iterate(prefills), batches.iterate(shares)):
        mark, erased_at = _newest_mark(marks, "phone", row.phone)
        if row.checkout.created_at > erased_at or not data_subjects.has_unverified_rows(row.phone):
            continue
        person = data_subjects.find_person(phone=row.phone)
        if person.customer is None:
            yield mark, _erase_again(person)


def _erase_again(person: Person) -> list[str]:
    try:
        erase(person, is_recorded=False)
    except StillNeeded as needed:
        return needed.reasons
    return []


def _open_reasons(person: Person) -> Iterator[str]:
    for order in person.led_orders.filter(status__in=OPEN_ORDERS):
        yield f"order {order.pk} is {order.status}"
    orders = {
        *person.led_orders.values_list("pk", flat=True),
        *person.shares.values_list("checkout", flat=True),
    }
    captured = PaymentRequest.objects.filter(checkout__in=orders, checkout__status=Status.CAPTURED)
    for share in captured.filter(status__in=OPEN_SHARES):
        yield f"share {share.pk} of order {share.checkout_id} is {share.status}"
    for dispute in Dispute.objects.filter(checkout_uuid__in=orders, status=Dispute.Status.OPEN):
        yield f"dispute {dispute.pk} of order {dispute.checkout_uuid} is open"
    # An operator needs the person's number to pay a refund that did not reach the card.
    unpaid = Discrepancy.objects.filter(operation__payment__checkout_uuid__in=orders, closed_at=None)
    for case in unpaid.filter(kind__in=[kind.name for kind in UNPAID_REFUNDS]):
        yield f"refund {case.operation_id} has not reached the payer"
    # The release of a hold is left out, because it needs no personal data.
    unfinished = Operation.objects.filter(payment__checkout_uuid__in=orders, ended_at=None)
    for operation in unfinished.exclude(kind=Operation.Kind.VOID):
        yield f"operation {operation.pk} ({operation.kind}) has not ended"


def _newer_order_reasons(person: Person, since: datetime | None) -> Iterator[str]:
    if since is not None:
        for order in person.led_orders.filter(created_at__gte=since):
            yield f"order {order.pk} is of {order.created_at:%Y-%m-%d}"


def _delete_personal_data(person: Person, now: datetime) -> None:
    phone = (person.customer.phone if person.customer else person.phone) or ""
    person.shares.update(name="", phone="", next_reminder_at=None, claim_name="")
    Prefill.objects.filter(pk__in=list(person.prefills.values_list("pk", flat=True))).delete()
    if phone:
        SignInCode.objects.filter(phone=phone).delete()
        KnownBrowser.objects.filter(phone=phone).delete()
        texts = SmsMessage.objects.filter(phone_digest__in=outbox.number_digests(phone))
        texts.update(phone_digest="", range_digest="")
        CardTry.objects.filter(phone_digest__in=declines.number_digests(phone)).delete()
    if person.customer is not None:
        PayerSignIn.objects.filter(customer_uuid=person.customer.pk).delete()
        Customer.objects.filter(pk=person.customer.pk).update(phone=None, name="", erased_at=now)


def _empty_opt_ins(person: Person) -> None:
    """Empty the e-mail addresses of the person's opt-ins (rule privacy.opt_ins).

    The service can only append to this table. A database function that belongs to the table's owner therefore
    empties the addresses.
    """
    known_as = [row.pk for row in person.known_as]
    queries.execute(statements.ERASE_OPT_INS, [known_as, crypto.encrypt("")])


def _marks(person: Person) -> list[str]:
    """Return the marks of a person: keyed digests of their number and of their e-mail addresses.

    Without the service's key, a mark does not identify anyone.
    """
    addresses = {opt_in.email.lower() for opt_in in person.opt_ins if opt_in.email}
    phone = (person.customer.phone if person.customer else person.phone) or ""
    phones = [phone] if phone else []
    return [_digests("phone", phone)[0] for phone in phones] + [
        _digests("e-mail", email)[0] for email in sorted(addresses)
    ]


def _digests(kind: str, value: str) -> list[str]:
    return crypto.keyed_digests(f"erased {kind}", value)


def _newest_mark(marks: dict[str, datetime], kind: str, value: str) -> tuple[str, datetime]:
    """Return the mark of a number or address in the file, and the time of its erasure.

    The file can contain one mark per lookup key. The newest one is returned. If there is no mark, the time is
    NEVER.
    """
    dated_marks = [(marks.get(mark, NEVER), mark) for mark in _digests(kind, value)]
    erased_at, mark = max(dated_marks)
    return mark, erased_at


def _record_marks(marks: list[str], now: datetime) -> None:
    """Append the marks to the file outside the database, before the erasure is committed.

    Several hosts can share the file, so a lock keeps their lines apart. When the function returns, the lines
    are on the disk.
    """
    if settings.ERASURES_FILE and marks:
        with Path(settings.ERASURES_FILE).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.writelines(f"{mark} {clock.iso(now)}\n" for mark in marks)
            file.flush()
            os.fsync(file.fileno())


def _recorded_marks() -> dict[str, datetime]:
    """Return each mark in the file with its newest time."""
    path = Path(settings.ERASURES_FILE or "/dev/null")
    lines = (
        sorted(line.partition(" ")[::2] for line in path.read_text().splitlines()) if path.exists() else []
    )
    return {mark: datetime.fromisoformat(at) for mark, at in lines}
