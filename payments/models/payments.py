"""Payments, their operations at the provider, inquiries about them, and disputes."""

from typing import ClassVar, cast
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from uuid_utils.compat import uuid7

from config.lib import clock
from payments import money
from payments.models.merchants import Merchant


def _condition_column(condition: Q) -> models.GeneratedField:
    """Return a generated column that is true in rows that meet the condition. It is used only in queries."""
    expression = models.ExpressionWrapper(condition, output_field=models.BooleanField())
    return models.GeneratedField(expression=expression, output_field=models.BooleanField(), db_persist=True)


class Payment(models.Model):
    """A payment by one card for one subject: a checkout, or a mate's share."""

    class Status(models.TextChoices):
        AUTHORIZING = "authorizing", "Being held"
        AUTHORIZED = "authorized", "Held"
        CAPTURED = "captured", "Captured"
        VOIDED = "voided", "Released"
        DECLINED = "declined", "Declined"
        REFUNDED = "refunded", "Refunded"

    class Kind(models.TextChoices):
        ORDER = "order", "The lead’s card pays the order"
        SHARE = "share", "A mate’s card pays a share"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.ORDER)
    subject = models.UUIDField(help_text="The checkout's or payment request's uuid.")
    checkout_uuid = models.UUIDField(help_text="The checkout of the payment, for the ledger.")
    amount = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    status = models.CharField(max_length=12, choices=Status, default=Status.AUTHORIZING)
    decline_reason = models.CharField(max_length=40, blank=True)
    provider_reference = models.CharField(
        max_length=255,
        blank=True,
        help_text="The provider's id of the payment, if it was registered there first.",
    )
    provider_account = models.CharField(
        max_length=64, blank=True, help_text="The account at the provider where the payment was made."
    )
    card_token = models.CharField(max_length=255)
    return_url = models.CharField(
        max_length=1000, blank=True, help_text="Where the payer goes after the bank's question."
    )
    card_brand = models.CharField(max_length=20, blank=True)
    card_last4 = models.CharField(max_length=4, blank=True)
    card_fingerprint = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    synced_at = models.DateTimeField(
        null=True, blank=True, help_text="When the provider’s books were last read."
    )
    abandoned_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the payer continued with another card. A hold that is found later is voided.",
    )
    # Whether this is the current payment of its checkout or share.
    is_live = _condition_column(
        Q(status__in=[Status.AUTHORIZING, Status.AUTHORIZED, Status.CAPTURED], abandoned_at=None)
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_payment_is_of_something"),
            models.CheckConstraint(
                condition=Q(kind="order", subject=F("checkout_uuid"))
                | (Q(kind="share") & ~Q(subject=F("checkout_uuid"))),
                name="an_orders_payment_is_of_its_checkout",
            ),
            models.UniqueConstraint(
                "subject", condition=Q(is_live=True), name="one_live_payment_per_subject"
            ),
            models.UniqueConstraint(
                "provider_reference",
                condition=~Q(provider_reference=""),
                name="a_payment_has_its_own_provider_reference",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["subject"]),
            models.Index(fields=["checkout_uuid"]),
            models.Index(fields=["merchant", "card_last4", "created_at"], name="payment_by_card"),
        ]

    def __str__(self) -> str:
        amount = money.display(self.amount, self.currency)
        status = str(self.Status(self.status).label).lower()
        return f"{amount}\N{NO-BREAK SPACE}· {self.card_brand} {self.card_last4}\N{NO-BREAK SPACE}· {status}"


class Operation(models.Model):
    """One action that the service wants the provider to take. Its id is the idempotency key for all its calls.

    Rule money.one_capture.
    """

    class Kind(models.TextChoices):
        AUTHORIZE = "authorize", "Authorization"
        CAPTURE = "capture", "Capture"
        VOID = "void", "Void"
        REFUND = "refund", "Refund"

    class State(models.TextChoices):
        PLANNED = "planned", "To be sent"
        IN_FLIGHT = "in_flight", "Being sent"
        NEEDS_ACTION = "needs_action", "The payer is asked"
        PENDING = "pending", "Accepted"
        UNKNOWN = "unknown", "In doubt"
        SUCCEEDED = "succeeded", "Done"
        DECLINED = "declined", "Declined"
        FAILED = "failed", "Failed"

    class Purpose(models.TextChoices):
        PAYMENT = "payment", "To charge the card, or to release its hold"
        REIMBURSEMENT = "reimbursement", "To pay a mate’s share back to the lead’s card"
        REFUND_PART = "refund_part", "To refund one card of the order"
        OUTSIDE = "outside", "Made outside this service"

    OPEN = (State.IN_FLIGHT, State.NEEDS_ACTION, State.UNKNOWN)
    ENDED = (State.SUCCEEDED, State.DECLINED, State.FAILED)
    NOT_ENDED = (State.PLANNED, *OPEN, State.PENDING)  # the states of the index `operation_due`

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="operations")
    kind = models.CharField(max_length=10, choices=Kind)
    purpose = models.CharField(max_length=13, choices=Purpose, default=Purpose.PAYMENT)
    amount = models.BigIntegerField()
    state = models.CharField(max_length=12, choices=State)
    reference = models.CharField(max_length=255, blank=True, help_text="The provider's id of the operation.")
    reason = models.CharField(max_length=40, blank=True, help_text="Why it was declined or failed.")
    action_url = models.URLField(blank=True, max_length=2048)
    refund_uuid = models.UUIDField(
        null=True, blank=True, help_text="The refund of which this refund part is a part."
    )
    share_uuid = models.UUIDField(
        null=True, blank=True, help_text="The mate's share that is reimbursed to the lead's card."
    )
    attempts = models.PositiveIntegerField(default=0)
    first_sent_at = models.DateTimeField(
        null=True, blank=True, help_text="No call under the key was sent before this time."
    )
    last_sent_at = models.DateTimeField(
        null=True, blank=True, help_text="No call under the key is sent after this time."
    )
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    actor = models.CharField(max_length=60)
    request_id = models.CharField(max_length=64, blank=True)
    traceparent = models.CharField(max_length=55, blank=True, default="", db_default="", editable=False)
    created_at = models.DateTimeField(
        help_text="By the database's clock, which decides how long the operation is in doubt."
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    # The operation was sent, and its outcome is not clear yet. It blocks other operations on its payment. However, a
    # refund does not block other refunds.
    is_open = _condition_column(
        Q(state__in=OPEN) | Q(state=State.PENDING, kind__in=[Kind.AUTHORIZE, Kind.CAPTURE, Kind.VOID])
    )
    resends = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        db_index=False,  # few rows have a value, so a partial index is defined below
        related_name="resent_by",
        help_text="The returned refund that this operation replaces.",
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="an_operation_is_of_something"),
            models.CheckConstraint(
                condition=Q(purpose__in=["payment", "outside"], refund_uuid=None, share_uuid=None)
                | Q(purpose="reimbursement", refund_uuid=None, share_uuid__isnull=False)
                | Q(purpose="refund_part", refund_uuid__isnull=False, share_uuid=None),
                name="an_operation_says_what_it_is_for",
            ),
            models.CheckConstraint(
                condition=Q(resends=None) | Q(kind="refund"), name="only_a_refund_is_sent_again"
            ),
            models.UniqueConstraint(
                "payment",
                # Several refunds can be open at the same time, because each is for a different part of the money.
                condition=Q(is_open=True) & ~Q(kind="refund"),
                name="one_open_operation_per_payment",
            ),
            models.UniqueConstraint(
                "payment",
                condition=Q(kind="capture", state="succeeded"),
                name="one_succeeded_capture_per_payment",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["succeeded", "declined", "failed"], ended_at__isnull=False)
                | (~Q(state__in=["succeeded", "declined", "failed"]) & Q(ended_at=None)),
                name="an_operation_has_an_end_when_it_ended",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                "next_attempt_at",
                name="operation_due",
                condition=Q(state__in=["planned", "in_flight", "needs_action", "pending", "unknown"]),
            ),
            models.Index("ended_at", name="operation_ended", condition=Q(ended_at__isnull=False)),
            models.Index("refund_uuid", name="operation_refund", condition=Q(refund_uuid__isnull=False)),
            models.Index("share_uuid", name="operation_share", condition=Q(share_uuid__isnull=False)),
            models.Index("resends", name="operation_resends", condition=Q(resends__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.Kind(self.kind).label}\N{NO-BREAK SPACE}· {str(self.State(self.state).label).lower()}"

    @property
    def reimbursed_share(self) -> UUID:
        """Return the share for which a reimbursement pays the lead."""
        return cast("UUID", self.share_uuid)

    @property
    def refund_of_part(self) -> UUID:
        """Return the refund to which a refund part belongs."""
        return cast("UUID", self.refund_uuid)

    @property
    def has_ended_without_hold(self) -> bool:
        """Return whether this is a declined or failed authorization.

        If it has nevertheless held money, the hold must be voided.
        """
        return self.kind == self.Kind.AUTHORIZE and self.state in (self.State.DECLINED, self.State.FAILED)


class Inquiry(models.Model):
    """A payment whose books must be read, because others might have moved its money at the provider."""

    payment = models.OneToOneField(Payment, on_delete=models.PROTECT, primary_key=True)
    due_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "inquiries"

    def __str__(self) -> str:
        return f"About {self.payment}"


class Dispute(models.Model):
    """A dispute: the payer's bank takes a payment's money back until the dispute is decided."""

    class Status(models.TextChoices):
        OPEN = "open"
        WON = "won"
        LOST = "lost"

    STANDING = (
        Status.OPEN,
        Status.LOST,
    )  # the payer has the money back, so a refund would pay it a second time

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="disputes")
    checkout_uuid = models.UUIDField(db_index=True)
    reference = models.CharField(max_length=255, help_text="The provider's id of the dispute.")
    amount = models.BigIntegerField()
    reason = models.CharField(max_length=40)
    status = models.CharField(max_length=4, choices=Status, default=Status.OPEN)
    opened_at = models.DateTimeField(help_text="When it was opened, according to the provider.")
    respond_by = models.DateTimeField(
        null=True, blank=True, help_text="Evidence can be submitted until this time."
    )
    created_at = models.DateTimeField(help_text="When it was recorded.")
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            # Open disputes have no `closed_at`. In this order, they come first, starting with the nearest deadline.
            models.Index(F("closed_at").desc(), F("respond_by").asc(), F("id").desc(), name="dispute_urgency")
        ]
        constraints: ClassVar = [
            models.UniqueConstraint("payment", "reference", name="a_dispute_is_recorded_once"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_dispute_is_about_something"),
            models.CheckConstraint(
                condition=Q(status="open", closed_at=None) | (~Q(status="open") & Q(closed_at__isnull=False)),
                name="a_dispute_has_an_end_when_it_is_decided",
            ),
        ]

    def __str__(self) -> str:
        amount = money.display(self.amount, self.payment.currency)
        return f"Dispute of {amount}\N{NO-BREAK SPACE}· {self.status}"

    @property
    def is_overdue(self) -> bool:
        """Return whether the deadline for evidence has passed."""
        return self.respond_by is not None and self.respond_by <= clock.now()
