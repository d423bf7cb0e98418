"""The sandbox bank's own tables. They refer to our payments and operations only by the ids that we send to it."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, cast
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from payments import money
from payments.provider import Card
from payments.providers.sandbox.cards import BY_LAST4, TestCard


class CardSession(models.Model):
    """One visit to the bank's card page. The table is unlogged.

    A crash of PostgreSQL empties the table, and its rows are missing in replicas and restored databases. A payer who is
    on the card page during the crash must start again from the order.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    subject = models.UUIDField()
    return_url = models.URLField(max_length=1000)
    page = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return str(self.subject)


class CardToken(models.Model):
    """A single-use token for the card that a payer entered for one order or share.

    The card number is never stored, but the charge stores its last four digits. The table is unlogged, so a crash of
    PostgreSQL empties it, and the payer must enter the card again.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    digest = models.CharField(max_length=64, unique=True)
    subject = models.UUIDField()
    last4 = models.CharField(max_length=4)
    brand = models.CharField(max_length=20)
    fingerprint = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.brand} {self.last4}"


class Charge(models.Model):
    """A charge on a card for one payment. The bank holds, captures or releases its amount."""

    class State(models.TextChoices):
        DECLINED = "declined"
        CHALLENGED = "challenged"
        HELD = "held"
        CAPTURED = "captured"
        VOIDED = "voided"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    payment = models.UUIDField(unique=True, help_text="The caller's id of the payment.")
    account = models.UUIDField(help_text="The caller's id of the merchant.")
    token = models.UUIDField(db_column="token_id", help_text="The id of the token, which pays one charge.")
    subject = models.UUIDField(
        null=True, blank=True, help_text="The checkout or share for which the card was entered."
    )
    last4 = models.CharField(
        max_length=4, blank=True, default="", db_default="", help_text="The last four digits of the card."
    )
    amount = models.BigIntegerField()
    refunded_amount = models.BigIntegerField(default=0)
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=10, choices=State)
    return_url = models.URLField(
        max_length=1000, blank=True, help_text="Where the payer goes after a challenge."
    )
    voids_failed = models.PositiveSmallIntegerField(default=0)
    silent_until = models.DateTimeField(
        null=True, blank=True, help_text="No call is answered before this time."
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(refunded_amount__gte=0) & Q(refunded_amount__lte=models.F("amount")),
                name="a_charge_gives_back_at_most_what_it_took",
            )
        ]

    def __str__(self) -> str:
        return f"{money.display(self.amount, self.currency)} {self.state}"

    @property
    def card(self) -> TestCard:
        """Return the test card of the charge. The card decides what the bank does."""
        return BY_LAST4[self.last4]

    @property
    def payer(self) -> UUID:
        """Return the id of the order or share for which the card was entered."""
        return cast("UUID", self.subject)

    @property
    def shown_card(self) -> Card:
        """Return the details of the card that the bank's caller can see."""
        return Card(self.card.brand, self.card.last4, self.card.fingerprint)


class Call(models.Model):
    """A line of the journal: a call, and the answer that repeated calls get while the bank remembers its key."""

    key = models.UUIDField(
        primary_key=True, help_text="The id of the line. It is the key of the call that created the line."
    )
    reference = models.UUIDField(
        null=True,
        blank=True,
        help_text="The key of the caller, remembered forever. Null for an act in the dashboard.",
    )
    is_remembered = models.BooleanField(
        default=True, help_text="Whether a call with the key still gets this answer."
    )
    kind = models.CharField(max_length=10)
    charge = models.ForeignKey(Charge, on_delete=models.PROTECT)
    amount = models.BigIntegerField()
    verdict = models.CharField(max_length=12)
    reason = models.CharField(max_length=40, blank=True)
    settles_at = models.DateTimeField(
        null=True, blank=True, help_text="When it settles. Null if it stays pending."
    )
    fails_with = models.CharField(max_length=40, blank=True, help_text="Why it fails when it settles.")
    returns_at = models.DateTimeField(null=True, blank=True, help_text="When a settled refund is returned.")
    created_at = models.DateTimeField(auto_now_add=True)
    refund = models.UUIDField(null=True, blank=True, help_text="The caller's id of the refund.")
    share = models.UUIDField(null=True, blank=True, help_text="The caller's id of the share.")
    has_returned = models.BooleanField(
        default=False, db_default=False, help_text="Whether a refund settled before it failed."
    )
    changed_at = models.DateTimeField(
        default=timezone.now,
        help_text="When it last changed. A list of changes since then returns it again.",
    )

    class Meta:
        indexes: ClassVar = [
            models.Index("settles_at", name="bank_call_settles", condition=Q(verdict="pending")),
            models.Index("returns_at", name="bank_call_returns", condition=Q(returns_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.verdict}"


class Dispute(models.Model):
    """A dispute about a charge. The charge's money is withdrawn until the dispute is decided.

    For an inquiry, money is withdrawn only if the inquiry is lost. After an appeal, a dispute is decided again.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        WON = "won"
        LOST = "lost"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    charge = models.ForeignKey(Charge, on_delete=models.PROTECT)
    amount = models.BigIntegerField()
    reason = models.CharField(max_length=40)
    status = models.CharField(max_length=4, choices=Status, default=Status.OPEN)
    opens_at = models.DateTimeField(help_text="The dispute is not visible before this time.")
    respond_by = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    is_inquiry = models.BooleanField(default=False, db_default=False)
    moved_at = ArrayField(
        models.DateTimeField(),
        default=list,
        db_default=[],
        blank=True,
        help_text="When each decision moved the money to the merchant, or away from them.",
    )
    is_reported = models.BooleanField(default=False)

    class Meta:
        indexes: ClassVar = [
            models.Index("opens_at", name="bank_dispute_opens", condition=Q(is_reported=False))
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.status}"

    @property
    def moves(self) -> Sequence[datetime]:
        """Return the times at which money moved: first a withdrawal, then returns and withdrawals in turn."""
        return [*([] if self.is_inquiry else [self.opens_at]), *self.moved_at]

    @property
    def has_taken(self) -> bool:
        """Return whether the payer has the money now."""
        return len(self.moves) % 2 == 1


class BankNotification(models.Model):
    """A notification about a call or a dispute. It is sent again until it is accepted, at most six times."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    call = models.ForeignKey(Call, on_delete=models.PROTECT, null=True, blank=True)
    dispute = models.ForeignKey(Dispute, on_delete=models.PROTECT, null=True, blank=True)
    verdict = models.CharField(max_length=12)
    due_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes: ClassVar = [
            models.Index("due_at", name="bank_notification_due", condition=Q(due_at__isnull=False))
        ]

    def __str__(self) -> str:
        return f"{self.call or self.dispute}: {self.verdict}"


class BrokenKey(models.Model):
    """An idempotency key. Every call with this key gets the same error 500."""

    key = models.UUIDField(primary_key=True)

    def __str__(self) -> str:
        return str(self.key)


class Fault(models.Model):
    """A fault that a test has requested: the next `times` calls of `verb` fail as described by `mode`."""

    class Mode(models.TextChoices):
        DOWN = "down", "the connection breaks before anything is done"
        ERROR = "error", "nothing is done, and the answer is a 500"
        HANG = "hang", "nothing is done, and no answer arrives"
        DONE_THEN_HANG = "done_then_hang", "it is done, and no answer arrives"
        DONE_THEN_RESET = "done_then_reset", "it is done, and the connection breaks"
        DONE_THEN_ERROR = "done_then_error", "it is done, and the answer is a 500"
        NONSENSE = "nonsense", "it is done, and the answer makes no sense"
        GARBAGE = "garbage", "it is done, and the notification has garbage in fields that do not matter"
        NO_AMOUNT = "no_amount", "it is done, and its notification has an amount that is not a number"
        NOTIFY_TWICE = "notify_twice", "it is done, and the notification is sent twice"
        NOTIFY_FIRST = "notify_first", "the notification is sent before the answer"
        REPLAYED_500 = "replayed_500", "nothing is done, and each later call with this key gets a 500"
        DONE_REPLAYED_500 = "done_replayed_500", "it is done, and each later call with this key gets a 500"
        ALREADY_CAPTURED = "already_captured", "it was captured in the bank's dashboard just before"
        PENDING = "pending", "it is accepted, and done 3 s later"
        PENDING_FOR_EVER = "pending_for_ever", "it is accepted, and never done"
        PENDING_THEN_FAILED = "pending_then_failed", "it is accepted, and refused 3 s later"
        FORGETS_KEYS = (
            "forgets_keys",
            "its key is forgotten: it is done again, or is known only by the payment",
        )
        NOT_VOUCHED = "not_vouched", "looked up only by its key: not found proves nothing"
        PARTIAL_HOLD = "partial_hold", "half of the amount is held"
        REFUND_CARD_CLOSED = "refund_card_closed", "refused: the card's account is closed"
        NOT_ACCEPTED = "not_accepted", "refused as a request: no result is stored for its key"
        VOID_REFUSED_ONCE = "void_refused_once", "refused for a temporary reason"
        VOID_REFUSED = "void_refused", "refused permanently"
        STALE = "stale", "the books are read without entries of the last five seconds"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    verb = models.CharField(max_length=10, help_text="authorize, capture, void, refund, look_up or movements")
    mode = models.CharField(max_length=20, choices=Mode)
    times = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.verb}: {self.mode}, {self.times} times"
