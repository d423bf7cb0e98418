"""Shares that mates are asked to pay, the group link to the shares, and refunds."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Left
from uuid_utils.compat import uuid7

from checkout import states
from checkout.models.customers import Customer
from checkout.models.orders import Checkout
from checkout.states import ShareStatus
from config.lib.crypto import DIGEST_LETTERS, EncryptedTextField, FindableTextField
from payments.models import Merchant, Payment


class CurrentShares(models.Manager["PaymentRequest"]):
    """The shares in the current split of each order, without shares that a newer split has replaced."""

    def get_queryset(self) -> models.QuerySet["PaymentRequest"]:
        return super().get_queryset().filter(replaced_at=None)


class PaymentRequest(models.Model):
    """A mate's share with its pay link (rule share.link).

    `status` is changed only while the checkout is locked, and a database trigger checks each change. If a newer split
    replaces a share whose link was open, the row of the share is kept, because a card can be held for it. Only the
    manager `every` returns such a row.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    checkout = models.ForeignKey(Checkout, on_delete=models.PROTECT, related_name="payment_requests")
    position = models.PositiveSmallIntegerField(
        help_text="The person's place on the bill. The lead is the first."
    )
    amount = models.BigIntegerField(help_text="Minor units")
    units = ArrayField(
        models.PositiveIntegerField(),
        blank=True,
        default=list,
        db_default=[],
        size=100,
        help_text="How many units of each line the share pays for. Empty if it is not split by item.",
    )
    name = models.CharField(max_length=60, blank=True, help_text="As the lead entered it.")
    phone = FindableTextField(blank=True, help_text="E.164, as the lead entered it.")
    status = models.CharField(max_length=10, choices=ShareStatus, default=ShareStatus.DRAFT)
    token = EncryptedTextField(editable=False)
    token_digest = models.CharField(max_length=64, unique=True, editable=False)
    mate = models.ForeignKey(Customer, on_delete=models.PROTECT, null=True, blank=True)
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, null=True, blank=True, help_text="The payment that paid the share."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="When the pay link ends.")
    paid_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    next_reminder_at = models.DateTimeField(
        null=True, blank=True, help_text="No reminder is sent before this time."
    )
    claim_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="The digest of the browser that has claimed the share.",
    )
    claim_name = models.CharField(
        max_length=30,
        blank=True,
        default="",
        db_default="",
        help_text="As the person who claimed the share entered it.",
    )
    claimed_at = models.DateTimeField(null=True, blank=True, help_text="When the claim began.")
    claimed_until = models.DateTimeField(null=True, blank=True, help_text="When the claim ends.")
    replaced_at = models.DateTimeField(
        null=True, blank=True, help_text="When a newer split replaced the share."
    )

    objects = CurrentShares()
    every: ClassVar[models.Manager["PaymentRequest"]] = models.Manager()

    class Meta:
        base_manager_name = "every"
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_share_is_of_something"),
            models.CheckConstraint(
                condition=Q(
                    status__in=["paid", "reimbursed", "refunded"],
                    payment__isnull=False,
                    paid_at__isnull=False,
                )
                | (~Q(status__in=["paid", "reimbursed", "refunded"]) & Q(payment=None, paid_at=None)),
                name="a_paid_share_has_a_payment",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["draft", "cancelled"]) | Q(expires_at__isnull=False),
                name="a_pay_link_ends",
            ),
            models.CheckConstraint(
                condition=Q(replaced_at=None) | Q(status=ShareStatus.CANCELLED),
                name="a_replaced_share_is_cancelled",
            ),
            models.UniqueConstraint(
                fields=["checkout", "position"],
                condition=Q(replaced_at=None),
                name="a_place_on_a_bill_is_taken_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index("expires_at", name="pay_link_open", condition=Q(status="open")),
            models.Index("checkout", name="share_pledged", condition=Q(status="pledged")),
            models.Index(Left("phone", DIGEST_LETTERS), name="share_asked_of_number", condition=~Q(phone="")),
            models.Index("id", name="share_named", condition=~Q(name="")),
        ]

    def __str__(self) -> str:
        return f"Share {self.position}\N{NO-BREAK SPACE}· {str(ShareStatus(self.status).label).lower()}"

    def move(self, to: ShareStatus, **facts: Any) -> None:
        """Change the status, and write the other fields in `facts`.

        If the share is no longer open, pledged or paying, its claim fields are cleared, except those in `facts`.
        Raises MoveRefused for a move that the table of states does not allow.
        """
        states.check_share_move(self.status, to)
        self.status = to
        if self.claim_digest and to not in (ShareStatus.OPEN, ShareStatus.PLEDGED, ShareStatus.PAYING):
            facts = NO_CLAIM | ({"name": self.shown_name} if to == ShareStatus.PAID else {}) | facts
        for name, value in facts.items():
            setattr(self, name, value)
        self.save(update_fields=["status", *facts])

    def begin_to_pay(self, mate: Customer, claim: str) -> None:
        """Change the status to `paying`. If another person has an expired claim, remove that claim."""
        is_theirs = self.claim_digest in ("", claim)
        self.move(ShareStatus.PAYING, mate=mate, **({} if is_theirs else NO_CLAIM))

    def claim(self, digest: str, now: datetime, until: datetime, *, name: str = "") -> None:
        """Write the claim of a browser: its digest, when it begins and ends, and the name that the person entered.

        If the browser extends its own claim, the time at which the claim began does not change. Rule group.kept.
        """
        if digest != self.claim_digest:
            self.claimed_at = now
        self.claim_digest, self.claim_name, self.claimed_until = digest, name, until
        self.save(update_fields=list(NO_CLAIM))

    def end_claim(self) -> None:
        for name, value in NO_CLAIM.items():
            setattr(self, name, value)
        self.save(update_fields=list(NO_CLAIM))

    def is_kept(self, now: datetime) -> bool:
        """Return whether the share is reserved for a person who claimed it through the group link.

        It is reserved until the claim expires, or longer if a card is paying it.
        """
        if not self.claim_digest:
            return False
        in_time = self.claimed_until is not None and now < self.claimed_until
        return self.status == ShareStatus.PAYING or (self.status == ShareStatus.OPEN and in_time)

    def is_reserved_for_another(self, claim: str, now: datetime) -> bool:
        """Return whether the share is reserved for another browser, which has a different claim."""
        return self.is_kept(now) and self.claim_digest != claim

    def has_free_units(self, now: datetime) -> bool:
        """Return whether the units of this share are free, so that mates can take some of them.

        Units are free if no one has paid for them or claimed them, and the lead has not assigned them to a person.
        Rule split.free_units.
        """
        return self.has_units_for_anyone and not self.is_kept(now)

    @property
    def has_units_for_anyone(self) -> bool:
        """Whether the share has units that the lead left free and that are not paid yet. Such units can be claimed."""
        is_unpaid = self.status in (ShareStatus.DRAFT, ShareStatus.OPEN)
        return bool(self.units) and is_unpaid and not self.is_addressed

    @property
    def is_addressed(self) -> bool:
        """Whether the lead entered a name or a number for the share. If so, only this person may decline it."""
        return bool(self.name or self.phone)

    @property
    def shown_name(self) -> str:
        """The name that the lead entered. If there is none, the name that the claiming person entered, or ""."""
        return self.name or self.claim_name


# The values of the claim fields if the share has no claim.
NO_CLAIM: dict[str, Any] = {"claim_digest": "", "claim_name": "", "claimed_at": None, "claimed_until": None}


class GroupLink(models.Model):
    """The single link to all free shares of an order. It is stored in the same way as a pay link (rule group.link)."""

    checkout = models.OneToOneField(
        Checkout, on_delete=models.PROTECT, primary_key=True, related_name="group_link"
    )
    token = EncryptedTextField(editable=False)
    token_digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Group link of {self.checkout.merchant_order_id}"


class ReplacedLink(models.Model):
    """A pay link that was replaced because the lead asked the mate again (rule share.replaced).

    Only the digest of the link's token is stored. With it, the service can recognise the link, but no one can use it.
    """

    share = models.ForeignKey(PaymentRequest, on_delete=models.PROTECT, related_name="replaced_links")
    token_digest = models.CharField(max_length=64, unique=True, editable=False)
    replaced_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"Replaced link of share {self.share.position}"


class Refund(models.Model):
    """A refund of a whole order. The merchant identifies the refund by a reference that the merchant chooses."""

    class Status(models.TextChoices):
        PENDING = "pending"
        SETTLED = "settled"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    checkout = models.ForeignKey(Checkout, on_delete=models.PROTECT, related_name="refunds")
    merchant_refund_ref = models.CharField(max_length=255)
    reason = models.CharField(max_length=500, null=True, blank=True)
    amount = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    failure_reason = models.CharField(max_length=40, null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "merchant", "merchant_refund_ref", name="a_refund_ref_is_used_once_per_merchant"
            ),
            models.UniqueConstraint(
                "checkout",
                condition=Q(status__in=["pending", "settled"]),
                name="one_refund_that_stands_per_checkout",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["merchant", "created_at", "id"], name="refund_listed"),
            models.Index("merchant", "created_at", name="refund_failed", condition=Q(status="failed")),
        ]

    def __str__(self) -> str:
        return f"{self.merchant_refund_ref}\N{NO-BREAK SPACE}· {str(self.Status(self.status).label).lower()}"
