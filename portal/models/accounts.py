"""The models for people: accounts, roles, invitations, previous passwords, login attempts."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from uuid_utils.compat import uuid7

from config.lib import quota
from payments.models import Merchant


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **facts: Any) -> User:
        """Create a person. Without a password, the person can set one only through a password reset."""
        user = self.new_user(email, password, **facts)
        user.save(using=self._db)
        return user

    def new_user(self, email: str, password: str | None = None, **facts: Any) -> User:
        """Return a person who is not saved yet.

        The password is hashed when a slot is free. Call this function outside a transaction because of the
        wait.
        """
        user = self.model(email=email.strip().lower(), **facts)
        user.set_password(password)
        return user

    def create_superuser(self, email: str, password: str | None = None, **facts: Any) -> User:
        """Create an operator with every right in the admin."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **facts)


class User(AbstractBaseUser, PermissionsMixin):
    """A person who signs in by e-mail: a member of a merchant's team, or an operator (`is_staff`)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField("operator", default=False)
    is_active = models.BooleanField("active", default=True)
    date_joined = models.DateTimeField(auto_now_add=True)
    disuse_warned_at = models.DateTimeField("warned about disuse", null=True, blank=True)
    disabled_for_disuse_at = models.DateTimeField(
        "disabled as unused",
        null=True,
        blank=True,
        help_text="After 90 days without a login; the person can enable it again.",
    )

    objects = UserManager()
    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(Lower("email"), name="one_person_per_email")]

    def __str__(self) -> str:
        return self.email

    def clean(self) -> None:
        """Change the e-mail to lower case, because logins look it up in lower case."""
        super().clean()
        self.email = self.email.lower()


class PreviousPassword(models.Model):
    """The hash of a person's current or earlier password (rule portal.passwords)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="previous_passwords")
    encoded = models.CharField(max_length=128, help_text="The hash of the password.")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.user}\N{NO-BREAK SPACE}· {self.created_at:%Y-%m-%d}"


class Role(models.TextChoices):
    """A person's role at a merchant. portal.access says what it allows."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    SUPPORT = "support"
    VIEWER = "viewer"

    @property
    def in_words(self) -> str:
        """The role with its article, such as "an owner"."""
        articles = {Role.OWNER: "an ", Role.ADMIN: "an ", Role.SUPPORT: ""}
        return f"{articles.get(self, 'a ')}{self.value}"


class Membership(models.Model):
    """A person's role in a merchant's team."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", "user", name="one_role_per_person_and_merchant")
        ]

    def __str__(self) -> str:
        return f"{self.user}\N{NO-BREAK SPACE}· {self.get_role_display().lower()}"


class Invitation(models.Model):
    """A role that a merchant offers by a mailed link. Only the hash of the link's token is stored."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role)
    token_digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When it was accepted or revoked.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                "merchant",
                Lower("email"),
                condition=Q(ended_at=None),
                name="one_open_invitation_per_merchant_and_email",
            )
        ]

    def __str__(self) -> str:
        return f"{self.email}\N{NO-BREAK SPACE}· {self.role}"

    @property
    def role_in_words(self) -> str:
        """The offered role with its article."""
        return Role(self.role).in_words

    @property
    def inviter(self) -> str:
        """The inviter's name for the invited person: a member's e-mail, or the service's name for an operator."""
        is_member = Membership.objects.filter(merchant=self.merchant_id, user=self.invited_by_id).exists()
        return self.invited_by.email if is_member else "Merchant Checkout"


class LoginAttempt(models.Model):
    """An attempt that portal.accounts.login_limits counts. The account and the address are stored only as digests."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=20)
    account_digest = models.CharField(max_length=64)
    address_digest = models.CharField(max_length=64)
    site_digest = quota.site_digest_field()
    created_at = models.DateTimeField()
    # The digests that the limits compare, by the name of the field. Only a new attempt has them.
    digests_by_field: dict[str, list[str]]

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["kind", "account_digest", "-created_at"], name="login_attempt_account"),
            models.Index(fields=["kind", "address_digest", "-created_at"], name="login_attempt_address"),
            models.Index(
                fields=["kind", "site_digest", "-created_at"],
                name="login_attempt_site",
                condition=quota.HAS_SITE,
            ),
            models.Index(fields=["created_at"], name="login_attempt_old"),
        ]

    def __str__(self) -> str:
        return self.kind
