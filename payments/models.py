"""The tables of money and whose it is: merchants, payments, operations, disputes, ledger, payouts, discrepancies."""

from typing import ClassVar, cast
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from uuid_utils.compat import uuid7

from payments import money


class Merchant(models.Model):
    """A business that takes payments; every query starts from one."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=120)
    country = models.CharField(max_length=2, default="GB", help_text="Of phone numbers without a prefix.")
    brand_colour = models.CharField(max_length=7, default="#1F4596", help_text="#RRGGBB")
    brand_version = models.PositiveIntegerField(default=1, help_text="Raise it when the colour changes.")
    support_url = models.URLField(blank=True)
    terms_url = models.URLField(blank=True)
    privacy_url = models.URLField(blank=True)
    opt_in_enabled = models.BooleanField(default=False)
    time_zone = models.CharField(
        max_length=64, default="Europe/London", help_text="Of the times in the portal. An IANA name."
    )
    provider_account = models.CharField(
        max_length=64,
        blank=True,
        help_text="Their account at the provider. Empty: ours. Of payments to come.",
    )
    return_hosts = ArrayField(
        models.CharField(max_length=253),
        default=list,
        blank=True,
        help_text="Where customers may be sent back to. None: anywhere.",
    )
    unpaid_minutes = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="How long an unpaid checkout can be paid. Empty: as the service has it.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(unpaid_minutes=None) | Q(unpaid_minutes__gte=15, unpaid_minutes__lte=1440),
                name="an_unpaid_checkout_lives_a_quarter_of_an_hour_to_a_day",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Switch(models.Model):
    """An operator's stop: no new checkouts, payments or captures, for one merchant or for all."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, blank=True, help_text="Empty: all merchants."
    )
    is_stopped = models.BooleanField(default=True)
    reason = models.CharField(max_length=200, help_text="For your colleagues.")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", nulls_distinct=False, name="one_switch_per_merchant")
        ]
        verbose_name_plural = "switches"

    def __str__(self) -> str:
        return f"{self.merchant or 'All merchants'}: {'stopped' if self.is_stopped else 'open'}"


def _generated(condition: Q) -> models.GeneratedField:
    """Return a column in which PostgreSQL keeps whether a condition is true of the row, for queries only."""
    expression = models.ExpressionWrapper(condition, output_field=models.BooleanField())
    return models.GeneratedField(expression=expression, output_field=models.BooleanField(), db_persist=True)


class Payment(models.Model):
    """One card's money for one subject: a checkout, or a mate's payment request."""

    class Status(models.TextChoices):
        AUTHORIZING = "authorizing"
        AUTHORIZED = "authorized"
        CAPTURED = "captured"
        VOIDED = "voided"
        DECLINED = "declined"
        REFUNDED = "refunded"

    class Kind(models.TextChoices):
        ORDER = "order", "the lead's card, for the order"
        SHARE = "share", "a mate's card, for their share"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.ORDER)
    subject = models.UUIDField(help_text="The checkout's or payment request's uuid.")
    checkout_uuid = models.UUIDField(help_text="The checkout that it belongs to, for the ledger.")
    amount = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    status = models.CharField(max_length=12, choices=Status, default=Status.AUTHORIZING)
    decline_reason = models.CharField(max_length=40, blank=True)
    provider_reference = models.CharField(
        max_length=255, blank=True, help_text="The provider's id of it, if it was registered there first."
    )
    provider_account = models.CharField(max_length=64, blank=True, help_text="Where it was made.")
    card_token = models.CharField(max_length=255)
    return_url = models.CharField(
        max_length=1000, blank=True, help_text="Where the bank's question leads back to."
    )
    card_brand = models.CharField(max_length=20, blank=True)
    card_last4 = models.CharField(max_length=4, blank=True)
    card_fingerprint = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    abandoned_at = models.DateTimeField(
        null=True, blank=True, help_text="The payer went on with another card; a hold found later is voided."
    )
    is_live = _generated(  # it is the payment that counts for its subject
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
            models.Index(fields=["merchant", "subject"]),
            models.Index(fields=["subject"]),
            models.Index(fields=["checkout_uuid"]),
            models.Index(fields=["merchant", "card_last4", "-created_at"]),
        ]

    def __str__(self) -> str:
        amount = money.display(self.amount, self.currency)
        return f"{amount} · {self.card_brand} {self.card_last4} · {self.status}"


class Operation(models.Model):
    """One wanted act at the provider. Its id is the idempotency key of every call that carries it out.

    Rule money.one_capture.
    """

    class Kind(models.TextChoices):
        AUTHORIZE = "authorize"
        CAPTURE = "capture"
        VOID = "void"
        REFUND = "refund"

    class State(models.TextChoices):
        PLANNED = "planned", "planned: to be sent"
        IN_FLIGHT = "in_flight", "in flight: being sent, or its sender died"
        NEEDS_ACTION = "needs_action", "needs action: the payer is being asked"
        PENDING = "pending", "pending: accepted, not settled"
        UNKNOWN = "unknown", "unknown: no clear answer"
        SUCCEEDED = "succeeded"
        DECLINED = "declined"
        FAILED = "failed"

    class Purpose(models.TextChoices):
        PAYMENT = "payment", "payment: the card is to pay, or to be let go"
        REIMBURSEMENT = "reimbursement", "reimbursement: what a mate paid goes to the lead"
        REFUND_PART = "refund_part", "refund part: a card gets back what it bore"

    OPEN = (State.IN_FLIGHT, State.NEEDS_ACTION, State.UNKNOWN)
    ENDED = (State.SUCCEEDED, State.DECLINED, State.FAILED)

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="operations")
    kind = models.CharField(max_length=10, choices=Kind)
    purpose = models.CharField(max_length=13, choices=Purpose, default=Purpose.PAYMENT)
    amount = models.BigIntegerField()
    state = models.CharField(max_length=12, choices=State)
    reference = models.CharField(max_length=255, blank=True, help_text="The provider's own.")
    reason = models.CharField(max_length=40, blank=True, help_text="Why it was declined or failed.")
    action_url = models.URLField(blank=True, max_length=2048)
    account = models.CharField(
        max_length=10,
        default="merchant",
        help_text="Whose money it is that a capture brings or a refund takes.",
    )
    refund_uuid = models.UUIDField(
        null=True, blank=True, help_text="The refund that a refund part belongs to."
    )
    share_uuid = models.UUIDField(
        null=True, blank=True, help_text="The mate's share that goes back to the lead's card."
    )
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    actor = models.CharField(max_length=60)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(
        help_text="By the database's clock, which judges how long it is in doubt."
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    # It holds up other operations on its payment. One that is accepted and not confirmed does too, except a refund,
    # beside which the next one may go on.
    is_open = _generated(
        Q(state__in=OPEN) | Q(state=State.PENDING, kind__in=[Kind.AUTHORIZE, Kind.CAPTURE, Kind.VOID])
    )
    returned_as = models.UUIDField(
        null=True, blank=True, help_text="In the ledger: that a refund which was settled came back."
    )
    closed_as = models.UUIDField(
        null=True,
        blank=True,
        help_text="In the ledger: that what it brought for the lead was closed against a lost dispute.",
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="an_operation_is_of_something"),
            models.CheckConstraint(
                condition=Q(purpose="payment", refund_uuid=None, share_uuid=None)
                | Q(purpose="reimbursement", refund_uuid=None, share_uuid__isnull=False)
                | Q(purpose="refund_part", refund_uuid__isnull=False, share_uuid=None),
                name="an_operation_says_what_it_is_for",
            ),
            models.CheckConstraint(
                condition=Q(returned_as=None) | Q(kind="refund", state="succeeded"),
                name="only_a_settled_refund_comes_back",
            ),
            models.UniqueConstraint(
                "returned_as",
                condition=Q(returned_as__isnull=False),
                name="a_refund_comes_back_once",
            ),
            models.CheckConstraint(
                condition=Q(closed_as=None) | Q(kind="capture", state="succeeded", account="lead"),
                name="only_what_is_owed_to_the_lead_is_closed",
            ),
            models.UniqueConstraint(
                "closed_as",
                condition=Q(closed_as__isnull=False),
                name="what_is_owed_is_closed_once",
            ),
            models.UniqueConstraint(
                "payment", condition=Q(is_open=True), name="one_open_operation_per_payment"
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
            models.Index("payment", name="operation_not_ended", condition=Q(ended_at=None)),
            models.Index("refund_uuid", name="operation_refund", condition=Q(refund_uuid__isnull=False)),
            models.Index("share_uuid", name="operation_share", condition=Q(share_uuid__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} · {self.state}"

    @property
    def reimbursed_share(self) -> UUID:
        """The share that a reimbursement gives to the lead."""
        return cast("UUID", self.share_uuid)

    @property
    def refund_of_part(self) -> UUID:
        """The refund that a refund part belongs to."""
        return cast("UUID", self.refund_uuid)

    @property
    def was_given_up(self) -> bool:
        """Whether we ended this authorization ourselves: a hold that it still brings is released."""
        return self.kind == self.Kind.AUTHORIZE and self.reason in (
            "challenge_expired",
            "another_card",
            "held_for_less",
            "given_up_by_operator",
        )


class Inquiry(models.Model):
    """A payment whose money others may have moved: the provider is to be asked, and only its answer is believed."""

    payment = models.OneToOneField(Payment, on_delete=models.PROTECT, primary_key=True)
    due_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "inquiries"

    def __str__(self) -> str:
        return f"about {self.payment_id}"


class Dispute(models.Model):
    """A payer's bank has taken a payment's money back, until it is decided who gets it."""

    class Status(models.TextChoices):
        OPEN = "open"
        WON = "won"
        LOST = "lost"

    STANDING = (Status.OPEN, Status.LOST)  # the payer has the money: nothing more is given back

    id = models.UUIDField(
        primary_key=True, default=uuid7, editable=False, help_text="In the ledger: its opening."
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="disputes")
    checkout_uuid = models.UUIDField(db_index=True)
    reference = models.CharField(max_length=255, help_text="The provider's own.")
    amount = models.BigIntegerField()
    reason = models.CharField(max_length=40)
    status = models.CharField(max_length=4, choices=Status, default=Status.OPEN)
    opened_at = models.DateTimeField(help_text="As the provider says.")
    respond_by = models.DateTimeField(null=True, blank=True, help_text="Until then evidence may be sent.")
    created_at = models.DateTimeField(help_text="When it was booked.")
    closed_at = models.DateTimeField(null=True, blank=True)
    decided_as = models.UUIDField(null=True, blank=True, help_text="In the ledger: its decision.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("payment", "reference", name="a_dispute_is_booked_once"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_dispute_is_about_something"),
            models.CheckConstraint(
                condition=Q(status="open", closed_at=None, decided_as=None)
                | (~Q(status="open") & Q(closed_at__isnull=False, decided_as__isnull=False)),
                name="a_dispute_has_an_end_when_it_is_decided",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason} · {self.status}"


class Posting(models.Model):
    """One line of the ledger. Append-only; the lines of a transaction sum to zero."""

    class Account(models.TextChoices):
        PROVIDER = "provider", "provider: what the provider owes us"
        MERCHANT = "merchant", "merchant: what we owe the merchant"
        LEAD = "lead", "lead: what we owe the lead"
        DISPUTED = "disputed", "disputed: what was taken back until it is decided"
        OUTSIDE = "outside", "outside: what moved where we do not see it"
        RETURNED = "returned", "returned: refunds that came back"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    transaction = models.UUIDField(
        help_text="What moved the money: an operation, its coming back or closing, a dispute, a booking."
    )
    checkout_uuid = models.UUIDField()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    account = models.CharField(max_length=10, choices=Account)
    amount = models.BigIntegerField(help_text="Minor units; what comes in is positive on `provider`.")
    currency = models.CharField(max_length=3)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("transaction", "account", name="a_transaction_posts_once_per_account"),
            models.CheckConstraint(condition=~Q(amount=0), name="a_posting_moves_something"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["checkout_uuid"]),
            models.Index(
                fields=["merchant", "account", "-created_at", "-id"],
                include=["amount", "currency"],
                name="posting_movements",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.account} {money.display(self.amount, self.currency)}"


class BalanceEntry(models.Model):
    """A line of the balance that the provider keeps for a merchant, as it tells it: the ledger does not know it."""

    class Kind(models.TextChoices):
        PAYMENT = "payment"
        REFUND = "refund"
        DISPUTE = "dispute"
        PAYOUT = "payout"
        FEE = "fee"
        OTHER = "other"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    account = models.CharField(max_length=64, blank=True, help_text="At the provider. Empty: ours.")
    reference = models.CharField(max_length=255, help_text="The provider's id of the line.")
    kind = models.CharField(max_length=7, choices=Kind)
    amount = models.BigIntegerField(help_text="Minor units; what goes out is negative.")
    fee = models.BigIntegerField(default=0)
    currency = models.CharField(max_length=3)
    made_at = models.DateTimeField()
    available_at = models.DateTimeField(
        null=True, blank=True, help_text="When it can be paid out, or reaches the bank account."
    )
    checkout_uuid = models.UUIDField(null=True, blank=True)
    operation = models.UUIDField(null=True, blank=True, help_text="The capture or refund that it is about.")
    payout = models.CharField(max_length=255, blank=True, help_text="The provider's id of its payout.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["account", "reference"], name="a_line_of_the_balance_is_kept_once"
            )
        ]
        indexes: ClassVar = [
            models.Index("operation", name="balance_of_operation", condition=Q(operation__isnull=False)),
            models.Index(
                fields=["merchant", "-made_at", "-id"], name="balance_payouts", condition=Q(kind="payout")
            ),
            models.Index("merchant", "payout", name="balance_in_payout", condition=~Q(payout="")),
        ]
        verbose_name_plural = "balance entries"

    def __str__(self) -> str:
        return f"{self.kind} {money.display(self.amount, self.currency)}"


class Booking(models.Model):
    """A payment's money that moved by no operation of ours, booked by an operator. Append-only."""

    class Kind(models.TextChoices):
        SETTLED_OTHERWISE = "settled_otherwise", "settled otherwise: the card could not take it"
        REFUNDED_OUTSIDE = "refunded_outside", "refunded outside: by somebody at the provider"

    id = models.UUIDField(
        primary_key=True, default=uuid7, editable=False, help_text="In the ledger: where it went."
    )
    borne_as = models.UUIDField(default=uuid7, editable=False, help_text="In the ledger: who bears it.")
    kind = models.CharField(max_length=20, choices=Kind)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="bookings")
    checkout_uuid = models.UUIDField(db_index=True)
    operation = models.OneToOneField(
        Operation,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        help_text="The part of a refund, or the reimbursement, that it closes.",
    )
    reference = models.UUIDField(
        null=True, blank=True, unique=True, help_text="The provider's record, booked once."
    )
    account = models.CharField(max_length=10, help_text="Who bears it.")
    amount = models.BigIntegerField()
    note = models.TextField()
    actor = models.CharField(max_length=60)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_booking_is_of_something")
        ]

    def __str__(self) -> str:
        return f"{self.kind} · {money.display(self.amount, self.payment.currency)}"


class Discrepancy(models.Model):
    """Something that should not be, left for a person, such as a difference from the provider's books."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, blank=True)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(max_length=60)
    subject = models.UUIDField(
        null=True, blank=True, help_text="The operation's, checkout's or provider record's own id."
    )
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    mailed_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "kind",
                "subject",
                condition=Q(closed_at=None),
                nulls_distinct=False,
                name="one_open_discrepancy_per_kind_and_subject",
            )
        ]
        indexes: ClassVar = [
            models.Index("created_at", name="discrepancy_to_mail", condition=Q(mailed_at=None))
        ]
        verbose_name_plural = "discrepancies"

    def __str__(self) -> str:
        return self.kind
