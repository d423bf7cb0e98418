"""Merchants, their logos and former accounts, operators' stops, and the mark that identifies the database's server."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7


class Merchant(models.Model):
    """A business that takes payments."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=120)
    country = models.CharField(
        max_length=2, default="GB", help_text="The country of phone numbers without a country code."
    )
    brand_colour = models.CharField(max_length=7, default="#1F4596", help_text="#RRGGBB")
    brand_version = models.PositiveIntegerField(
        default=1, help_text="Increased when the colour or the logo changes."
    )
    logo_version = models.PositiveIntegerField(
        null=True,
        blank=True,
        editable=False,
        help_text="The version of the brand that brought the logo. Null if there is no logo.",
    )
    logo_width = models.PositiveSmallIntegerField(
        null=True, blank=True, editable=False, help_text="CSS pixels, at a height of 36."
    )
    support_url = models.URLField("help page", blank=True)
    terms_url = models.URLField("terms page", blank=True)
    privacy_url = models.URLField("privacy page", blank=True)
    shop_url = models.URLField(
        "shop’s address",
        blank=True,
        default="",
        db_default="",
        help_text="Where payers go if their order has no cancel URL. Empty if they stay on the page.",
    )
    opt_in_enabled = models.BooleanField("ask for marketing consent", default=False)
    time_zone = models.CharField(
        max_length=64, default="Europe/London", help_text="The time zone of the portal: an IANA name."
    )
    provider_account = models.CharField(
        max_length=64,
        blank=True,
        help_text=("The provider account of the merchant's future payments. Empty: the service's own."),
    )
    return_hosts = ArrayField(
        models.CharField(max_length=253),
        default=list,
        blank=True,
        help_text="Hosts to which customers can be sent back. Any host if the list is empty.",
    )
    unpaid_minutes = models.PositiveSmallIntegerField(
        "minutes to pay",
        null=True,
        blank=True,
        help_text="How long an unpaid checkout can be paid. Null for the service's default.",
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


class FormerAccount(models.Model):
    """An account at the provider that a merchant used earlier. The merchant's earlier payments are still there.

    A trigger adds the row when the merchant gets a different account. Rule provider.accounts.
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    provider_account = models.CharField(
        max_length=64, blank=True, help_text="Empty for the service's own account."
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["merchant", "provider_account"], name="a_former_account_is_kept_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.merchant}: {self.provider_account or 'ours'}"


class Logo(models.Model):
    """A merchant's logo. The images have their own table, because every request reads the merchant's row."""

    merchant = models.OneToOneField(Merchant, on_delete=models.CASCADE, primary_key=True)
    version = models.PositiveIntegerField(
        help_text="The version of the brand that brought the logo. A part of the logo's address."
    )
    mark = models.BinaryField(help_text="A small PNG, shown next to the name.")
    card = models.BinaryField(help_text="A large PNG, shown by chats that preview a group's link.")
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.merchant}: {self.version}"


class Switch(models.Model):
    """An operator's stop of new checkouts, payments and captures, for one merchant or for all merchants."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, blank=True, help_text="Null for all merchants."
    )
    is_stopped = models.BooleanField("stopped", default=True)
    reason = models.CharField(max_length=200, help_text="A note for your colleagues.")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", nulls_distinct=False, name="one_switch_per_merchant")
        ]
        verbose_name_plural = "switches"

    def __str__(self) -> str:
        return f"{self.merchant or 'All merchants'}: {'stopped' if self.is_stopped else 'open'}"


class DatabaseMark(models.Model):
    """The server on which the database was last opened, in a single row (payments/restore_guard.py)."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    server = models.CharField(max_length=100)
    word = models.CharField(
        max_length=100, blank=True, help_text="The value of DATABASE_RESTORED at the last start."
    )
    opened_at = models.DateTimeField(auto_now=True)
    repair_since = models.DateTimeField(
        null=True,
        blank=True,
        help_text="The time from which a repair that has begun reads the provider's books.",
    )

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=Q(id=1), name="a_database_has_one_mark")]

    def __str__(self) -> str:
        return self.server
