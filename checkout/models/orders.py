"""Checkouts, with their items and their history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now, Upper
from django.utils.functional import cached_property
from uuid_utils.compat import uuid7

from checkout import states
from checkout.models import statements
from checkout.models.customers import Customer
from checkout.states import Status, VoidReason
from config.lib.database import queries
from config.lib.prepared import Prepared
from payments import restore_guard
from payments.cause import Cause
from payments.models import Merchant, Payment


class ColumnValue(NamedTuple):
    """A placeholder for the value of a column. When several checkouts are written, each one uses its own value."""

    column: str


class Item(NamedTuple):
    """One line of an order, as the merchant sent it. Amounts are in minor units, and negative for a discount."""

    item_ref: str
    name: str
    quantity: int
    unit_price: int
    currency: str
    category: str
    custom_data: dict[str, Any] | None


def _sql_value(value: Any) -> Any:
    if isinstance(value, models.Model):
        return value.pk
    return value.value if isinstance(value, Enum) else value


def _parameters(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in `facts` as SQL parameters, by column name. A ColumnValue is excluded."""
    values = {name: value for name, value in facts.items() if not isinstance(value, ColumnValue)}
    columns = {field.name: str(field.column) for field in Checkout._meta.concrete_fields}
    return {columns[name]: _sql_value(value) for name, value in values.items()}


def _move_parameters(
    checkouts: Sequence[Checkout], to: Status, cause: Cause, at: datetime | ColumnValue
) -> dict[str, Any]:
    return {
        "ids": [checkout.pk for checkout in checkouts],
        "changes": [uuid7() for _ in checkouts],
        "origins": [str(checkout.status) for checkout in checkouts],
        "ats": [checkout.resolve(at) for checkout in checkouts],
        "status": to.value,
        "actor": cause.actor,
        "request_id": cause.request_id,
    }


class CheckoutQuerySet(models.QuerySet["Checkout"]):
    def with_bill(self) -> CheckoutQuerySet:
        """Read the order lines in the same statement, so that `Checkout.bill` needs no further query."""
        return self.annotate(lines=models.Func(template=statements.BILL_LINES, output_field=models.Field()))

    def late(self, status: Status) -> CheckoutQuerySet:
        """Return the checkouts with this status whose deadline has passed, oldest deadline first."""
        deadline = states.DEADLINES[status]
        return self.filter(**{"status": status, f"{deadline}__lte": Now()}).order_by(deadline)

    def move(
        self,
        checkouts: Sequence[Checkout],
        to: Status,
        cause: Cause,
        at: datetime | ColumnValue,
        **facts: Any,
    ) -> None:
        """Change the status of the checkouts, and add an entry to the history of each checkout.

        `facts` are the other fields to write. `at` and the values in `facts` can be a ColumnValue. If the table of
        states does not allow a move, MoveRefused is raised before the first write. Must be called with the rows
        locked. No other code may change the status of a checkout.
        """
        for checkout in checkouts:
            states.check_move(checkout.status, to)
        parameters, written = _move_parameters(checkouts, to, cause, at), _parameters(facts)
        owned = {name: value.column for name, value in facts.items() if isinstance(value, ColumnValue)}
        columns = owned | {column: f"%({column})s" for column in written}
        queries.execute(statements.move_statement(columns), parameters | written)
        for checkout in checkouts:
            for name, value in facts.items():
                setattr(checkout, name, checkout.resolve(value))
            checkout.status = to

    def locked(self, checkout_uuid: UUID, merchant: Merchant | None = None) -> Checkout:
        """Lock a checkout and return it. Its `locked_at` is the database's time, read under the lock.

        Raises Checkout.DoesNotExist, also if the checkout belongs to another merchant. Raises
        restore_guard.ServiceClosed in a restored database that is not repaired yet, because no money may be moved
        there.

        If this statement has to wait for the lock, PostgreSQL reads the locked row again after the wait. It does not
        read joined rows again, so they can be out of date. Therefore, only the merchant is joined. The payment and the
        lead are read when they are used.
        """
        restore_guard.check()
        if merchant is None:
            return _LOCKED.get(checkout_uuid)
        return _LOCKED_OF_MERCHANT.get(checkout_uuid, merchant.pk)


class Checkout(models.Model):
    """An order for which a merchant wants to be paid. Only `move` writes `status`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    merchant_order_id = models.CharField(max_length=255)
    status = models.CharField(max_length=10, choices=Status, default=Status.CREATED)
    amount = models.BigIntegerField(help_text="Minor units")
    currency = models.CharField(max_length=3)
    metadata = models.JSONField(
        null=True, blank=True, help_text="As the merchant sent it. Null if the merchant sent no data."
    )
    return_url = models.CharField(max_length=2048)
    cancel_url = models.CharField(max_length=2048)
    lead = models.ForeignKey(
        Customer, on_delete=models.PROTECT, null=True, blank=True, db_index=False, related_name="led"
    )
    people = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="How many people share the cost, including the lead. 1 if the lead pays it all.",
    )
    language = models.CharField(
        max_length=8,
        blank=True,
        default="",
        db_default="",
        help_text="The language of the page on which a lead who shares the cost paid.",
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, blank=True, db_index=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(
        help_text="When a field of the API's answer last changed, by the database's clock."
    )
    expires_at = models.DateTimeField(null=True, blank=True, help_text="As the merchant sent it.")
    payable_until = models.DateTimeField()
    authorized_at = models.DateTimeField(null=True, blank=True)
    capture_before = models.DateTimeField(null=True, blank=True)
    captured_at = models.DateTimeField(null=True, blank=True)
    voided_at = models.DateTimeField(null=True, blank=True)
    void_reason = models.CharField(max_length=20, choices=VoidReason, blank=True)
    cancel_note = models.CharField(max_length=255, blank=True, help_text="The merchant's note.")
    expired_at = models.DateTimeField(null=True, blank=True)
    refunded_amount = models.BigIntegerField(default=0)
    last_refund_at = models.DateTimeField(null=True, blank=True)

    locked_at: datetime  # set by `locked`
    is_settled_later = False  # True while a sync has recorded only some of the provider's books

    objects = CheckoutQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_checkout_costs_something"),
            models.CheckConstraint(
                condition=Q(status__in=["created", "expired"], authorized_at=None)
                | Q(status="voided")
                | Q(
                    status__in=["authorized", "captured", "refunding", "refunded"],
                    authorized_at__isnull=False,
                    capture_before__isnull=False,
                    payment__isnull=False,
                ),
                name="a_held_checkout_has_a_payment_and_a_deadline",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["captured", "refunding", "refunded"], captured_at__isnull=False)
                | (~Q(status__in=["captured", "refunding", "refunded"]) & Q(captured_at=None)),
                name="captured_at_tells_that_money_moved",
            ),
            models.CheckConstraint(
                condition=(Q(status="voided", voided_at__isnull=False) & ~Q(void_reason=""))
                | (~Q(status="voided") & Q(voided_at=None, void_reason="")),
                name="a_voided_checkout_says_when_and_why",
            ),
            models.CheckConstraint(
                condition=Q(status="expired", expired_at__isnull=False)
                | (~Q(status="expired") & Q(expired_at=None)),
                name="an_expired_checkout_says_when",
            ),
            models.CheckConstraint(
                condition=Q(status="refunded", refunded_amount=F("amount"), last_refund_at__isnull=False)
                | (~Q(status="refunded") & Q(refunded_amount=0, last_refund_at=None)),
                name="a_refund_returns_everything",
            ),
        ]
        indexes: ClassVar = [
            # The index is ascending, although it is read backwards. A new row comes after the merchant's other rows,
            # so index pages that are full do not change. In a descending index, a new row would come first. Each full
            # page would be split, and both halves would be written to the WAL.
            models.Index(fields=["merchant", "created_at", "id"], name="checkout_listed"),
            # This index serves searches by the first characters of an order id, in upper or lower case. For a complete
            # id, PostgreSQL uses the index only if the query has an `iexact` condition in addition to the exact one.
            models.Index(
                "merchant", OpClass(Upper("merchant_order_id"), "text_pattern_ops"), name="checkout_order_ids"
            ),
            models.Index(fields=["merchant", "status", "created_at", "id"], name="checkout_of_status"),
            models.Index(fields=["merchant", "updated_at"], name="checkout_changed"),
            models.Index(
                fields=["merchant", "created_at", "id"], name="checkout_split", condition=Q(people__gt=1)
            ),
            models.Index("capture_before", name="checkout_holds", condition=Q(status="authorized")),
            models.Index("payable_until", name="checkout_unpaid", condition=Q(status="created")),
            models.Index("lead", name="checkout_led", condition=Q(lead__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.merchant_order_id}\N{NO-BREAK SPACE}· {str(Status(self.status).label).lower()}"

    @property
    def url(self) -> str:
        """The URL of the page on which the customer pays."""
        return f"{settings.CHECKOUT_PAGE_URL}?id={self.pk}"

    @property
    def has_mates(self) -> bool:
        """Whether the cost is split between the lead and mates."""
        return (self.people or 1) > 1

    def is_led_by_another(self, person_uuid: UUID | None) -> bool:
        """Return whether another person leads the checkout. Rule pay.lead.

        `person_uuid` is None if the person has not signed in.
        """
        return self.lead_id is not None and self.lead_id != person_uuid

    def has_lapsed(self, now: datetime) -> bool:
        """Return whether the checkout is held and its deadline has passed."""
        return (
            self.status == Status.AUTHORIZED
            and self.capture_before is not None
            and now >= self.capture_before
        )

    @cached_property
    def bill(self) -> list[Item]:
        """The items of the order, in the sequence in which the merchant sent them. They never change."""
        lines: list[list[Any]] | None = vars(self).get("lines")
        if lines is None:
            found = Bill.objects.filter(pk=self.pk).first()
            lines = found.lines if found else []
        return [Item(*line) for line in lines]

    def has_expired(self, now: datetime) -> bool:
        """Return whether the checkout is unpaid and can no longer be paid."""
        return self.status == Status.CREATED and now >= self.payable_until

    def touch(self, **facts: Any) -> None:
        """Write the given fields, and set `updated_at`, because the API's response has changed.

        Without fields, only `updated_at` is set. It is set to the database's time, as in `move`, so that a list of
        changed checkouts does not miss any. Must be called with the row locked.
        """
        self._write(facts, is_shown=True)

    def note(self, **facts: Any) -> None:
        """Write fields that the API does not show. Must be called with the row locked."""
        self._write(facts, is_shown=False)

    def _write(self, facts: Mapping[str, Any], *, is_shown: bool) -> None:
        parameters = _parameters(facts)
        queries.execute(
            statements.update_statement(parameters, is_shown=is_shown), parameters | {"id": self.pk}
        )
        for name, value in facts.items():
            setattr(self, name, value)

    def move(self, to: Status, cause: Cause, now: datetime, **facts: Any) -> None:
        """Change the status of this checkout, as `CheckoutQuerySet.move` does."""
        Checkout.objects.move([self], to, cause, now, **facts)

    def resolve(self, value: Any) -> Any:
        """Return `value`. If it is a ColumnValue, return the value that this checkout has in the column."""
        return getattr(self, value.column) if isinstance(value, ColumnValue) else value


def _locking() -> CheckoutQuerySet:
    return Checkout.objects.select_for_update(of=("self",), no_key=True).select_related("merchant")


_LOCKED = Prepared(lambda pk: _locking().filter(pk=pk), UUID, read_at="locked_at")
_LOCKED_OF_MERCHANT = Prepared(
    lambda pk, merchant: _locking().filter(pk=pk, merchant=merchant), UUID, UUID, read_at="locked_at"
)


class Bill(models.Model):
    """The items of an order, in one row. They are written together, read together, and never change."""

    checkout = models.OneToOneField(Checkout, primary_key=True, on_delete=models.CASCADE, related_name="+")
    lines = models.JSONField(help_text="The fields of each item, in the order of Item's fields.")

    def __str__(self) -> str:
        return f"{len(self.lines)} lines"


class Change(models.Model):
    """An entry in a checkout's history. Entries are only added, never changed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    checkout = models.ForeignKey(Checkout, on_delete=models.PROTECT, related_name="changes")
    origin = models.CharField(
        max_length=10,
        choices=Status,
        blank=True,
        help_text="The previous status. Empty for the creation.",
    )
    to = models.CharField(max_length=10, choices=Status)
    actor = models.CharField(max_length=60)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        begin = f"{Status(self.origin).label} → " if self.origin else ""
        return f"{begin}{Status(self.to).label}"
