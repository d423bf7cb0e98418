"""The models for keys, the audit log, notes, trials, mails, and figures by hour."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.http import HttpRequest
from oauth2_provider.models import AbstractApplication
from uuid_utils.compat import uuid7

from config.lib.crypto import EncryptedTextField
from payments.models import Merchant
from portal.models.accounts import User


class ApiClient(AbstractApplication):
    """A merchant's key: a client id with one secret, or with two secrets while the key is being rotated."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="api_clients")
    scopes = models.TextField(help_text="Separated by spaces.")
    holder = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="The person who was shown the secret.",
    )
    previous_secret = models.CharField(max_length=255, blank=True, help_text="The hash of the secret.")
    previous_holder = models.ForeignKey(
        User,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="The person who was shown the previous secret.",
    )
    rotated_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API client"

    def __str__(self) -> str:
        return str(self.name or self.client_id)

    def is_usable(self, request: HttpRequest | None) -> bool:
        """Return whether the client may still get tokens."""
        return self.revoked_at is None


class AuditEntry(models.Model):
    """An action that a person or an API key took for a merchant. Rows are only added."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True)
    client = models.ForeignKey(ApiClient, on_delete=models.PROTECT, null=True, blank=True)
    action = models.CharField(max_length=60)
    facts = models.JSONField(default=dict)
    is_operators = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether the person acted as an operator of the service.",
    )
    address = models.GenericIPAddressField(null=True, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes: ClassVar = [models.Index(fields=["merchant", "-created_at", "-id"])]

    def __str__(self) -> str:
        return self.action

    @property
    def actor_name(self) -> str:
        """The person's e-mail, or the key's name. A merchant does not see which operator acted."""
        if self.is_operators:
            return "Our support"
        if self.client:
            return f"Key “{self.client}”"
        return self.user.email if self.user else ""


class CheckoutNote(models.Model):
    """A note on an order. It is never changed.

    `portal.tasks` deletes it when the order's customer is erased.
    """

    MAX_LETTERS = 1000

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    checkout_uuid = models.UUIDField()
    user = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False)
    text = models.CharField(max_length=MAX_LETTERS)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["checkout_uuid", "created_at", "id"], name="note_of_checkout")
        ]

    def __str__(self) -> str:
        return str(self.checkout_uuid)


class Trial(models.Model):
    """A run of a checklist case through the merchant's own integration, in the sandbox (`portal.trials`).

    `evidence` contains the observations in the words of the page. It remains after the service deletes the
    deliveries and calls that it names.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False)
    case = models.CharField(max_length=20)
    checkout_uuid = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField()
    acted_at = models.DateTimeField(null=True, blank=True, help_text="When the sandbox had done its part.")
    ended_at = models.DateTimeField(null=True, blank=True)
    next_look_at = models.DateTimeField(null=True, blank=True)
    has_passed = models.BooleanField(null=True, blank=True, help_text="Empty while the case is in progress.")
    reason = models.CharField(max_length=400, blank=True, help_text="Why it failed.")
    evidence = models.JSONField(default=list)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "merchant", "case", condition=Q(ended_at=None), name="one_running_trial_of_a_case"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, has_passed=None, next_look_at__isnull=False)
                | Q(ended_at__isnull=False, has_passed__isnull=False, next_look_at=None),
                name="a_trial_that_has_ended_has_an_outcome",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["merchant", "-created_at"], name="trial_of_merchant"),
            models.Index("next_look_at", name="trial_due", condition=Q(next_look_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.case


class LastWrite(models.Model):
    """The position of the database's log after the latest change by a merchant's people or by operators.

    The position is read after the transaction of the change has committed.
    """

    whose = models.UUIDField(primary_key=True, help_text="The id of the merchant. Zeros for the operators.")
    position = models.BigIntegerField()

    def __str__(self) -> str:
        return str(self.whose)


class OutboundEmail(models.Model):
    """A mail to a merchant's people, or to one person about their login. It is waiting or was sent.

    `key` makes it unique among the merchant's mails of its kind.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=80)
    facts = models.JSONField(default=dict)
    text = EncryptedTextField(
        null=True,
        blank=True,
        editable=False,
        help_text=("The recipient, subject and body of an unsent mail about a login, one line each."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField(null=True, blank=True, help_text="It is not sent after this time.")
    next_try_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    dropped_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the service gave up, because the mail server did not accept it.",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", "kind", "key", name="a_notice_is_sent_once")
        ]
        indexes: ClassVar = [
            models.Index("next_try_at", name="notice_due", condition=Q(next_try_at__isnull=False)),
            models.Index("dropped_at", name="notice_dropped", condition=Q(dropped_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Canary(models.Model):
    """A known word that is encrypted with the database's keys, and the environment that wrote the database.

    A process that cannot decrypt the word has the wrong keys. A process in a different environment does not
    start.
    """

    sealed = EncryptedTextField()
    digest = models.CharField(max_length=64)
    environment = models.CharField(max_length=10)
    planted_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "canaries"

    def __str__(self) -> str:
        return f"planted {self.planted_at:%Y-%m-%d}"


class PaymentHour(models.Model):
    """A merchant's captures, cancels, lapses and refunds in one hour and one currency, for the home page."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE)
    hour = models.DateTimeField()
    currency = models.CharField(max_length=3)
    captured_count = models.PositiveIntegerField(default=0)
    captured_amount = models.BigIntegerField(default=0)
    cancelled_count = models.PositiveIntegerField(default=0)
    lapsed_count = models.PositiveIntegerField(default=0)
    lapsed_amount = models.BigIntegerField(default=0)
    refunded_count = models.PositiveIntegerField(default=0)
    refunded_amount = models.BigIntegerField(default=0)
    hold_times = ArrayField(
        models.PositiveIntegerField(),
        default=list,
        blank=True,
        help_text=("The captures in each of portal.dashboard.histogram's slots, by the time since the hold."),
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "merchant", "hour", "currency", name="an_hour_of_payments_is_counted_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H} {self.currency}"


class DeliveryHour(models.Model):
    """The deliveries to a merchant's endpoint in one hour, for the home page."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE)
    hour = models.DateTimeField()
    delivered_count = models.PositiveIntegerField(default=0)
    failed_count = models.PositiveIntegerField(default=0)
    # Only the previous release reads the durations. The next release can remove them (decision 0029).
    durations = ArrayField(
        models.PositiveIntegerField(),
        default=list,
        blank=True,
        help_text="The number of attempts in each of portal.dashboard.histogram's slots, by their duration.",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", "hour", name="an_hour_of_deliveries_is_counted_once")
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}"
