"""The models of the hosted page: sign-in codes, sign-ins, SMS messages, entered cards, CSP reports, opt-ins."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models.functions import Left
from uuid_utils.compat import uuid7

from checkout.models import MerchantCustomer
from config.lib import quota
from config.lib.crypto import DIGEST_LETTERS, KEY_MARK_LETTERS, EncryptedTextField, FindableTextField
from payments.models import Merchant

_COUNTED = models.Q(is_counted=True)


class SignInCode(models.Model):
    """A code sent to a phone, valid for one checkout or share in one browser.

    Only the keyed hash of the code is stored.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    subject = models.UUIDField(help_text="The checkout's or payment request's uuid.")
    phone = FindableTextField()
    browser_digest = models.CharField(max_length=64)
    code_digest = models.CharField(max_length=64)
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    read_at: datetime  # `codes.waiting_code` sets this attribute and the next one
    is_lost: bool

    class Meta:
        indexes: ClassVar = [models.Index(fields=["subject", "created_at"])]

    def __str__(self) -> str:
        return "Sign-in code"


class PayerSignIn(models.Model):
    """A person's sign-in to one checkout or share in one browser. A signed cookie contains the id of this row."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    subject = models.UUIDField(help_text="The checkout's or payment request's uuid.")
    customer_uuid = models.UUIDField(db_index=True)
    is_proven = models.BooleanField(
        help_text="Whether the payer entered a code. Otherwise the browser was remembered."
    )
    began_at = models.DateTimeField()
    read_at: datetime  # time of the query, set when a request reads the row

    def __str__(self) -> str:
        return "Sign-in"


class KnownBrowser(models.Model):
    """A browser that remembers its payer's number.

    The browser stores a random token, and the row stores the token's hash.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    token_digest = models.CharField(max_length=64, unique=True)
    phone = FindableTextField()
    proven_at = models.DateTimeField(
        help_text="When a code verified the number. The browser is remembered from then on."
    )

    class Meta:
        indexes: ClassVar = [models.Index(Left("phone", DIGEST_LETTERS), name="known_number")]

    def __str__(self) -> str:
        return f"Browser known since {self.proven_at.day} {self.proven_at:%b %Y}"


class SmsMessage(models.Model):
    """An SMS message that waits to be sent, or has ended.

    A message ends when it is sent, refused or out of date. Its number and its text are then deleted. The
    other fields are kept, because the limits count them. A message with a sign-in code has the id of this
    code. A message to a lead has the id of its notification (LeadNotification).
    """

    class Kind(models.TextChoices):
        CODE = "code", "Sign-in code"
        RETURN = "return", "Code for a returning payer"
        INVITATION = "invitation"
        REMINDER = "reminder"
        LEAD = "lead", "News for the lead"
        RECEIPT = "receipt", "Receipt link"

    CODES = (Kind.CODE, Kind.RETURN)

    class Receipt(models.TextChoices):
        DELIVERED = "delivered"
        UNDELIVERED = "undelivered"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=10, choices=Kind)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    checkout_uuid = models.UUIDField()
    subject = models.UUIDField(help_text="The checkout's or payment request's uuid.")
    phone = EncryptedTextField(null=True, blank=True, editable=False)
    body = EncryptedTextField(null=True, blank=True, editable=False)
    phone_digest = models.CharField(
        max_length=64, blank=True, help_text="Empty if the message has no recipient."
    )
    range_digest = models.CharField(max_length=64, blank=True)
    address_digest = models.CharField(max_length=64)
    site_digest = quota.site_digest_field()
    created_at = models.DateTimeField()
    is_counted = models.BooleanField(
        default=True,
        help_text=("Whether it counts against the budgets. It does not after the payment succeeds."),
    )
    due_at = models.DateTimeField(null=True, blank=True, help_text="Null if it is not sent any more.")
    ends_at = models.DateTimeField(help_text="It is not sent after this time.")
    claimed_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When sending began. It might have been sent since then, so it is not sent again.",
    )
    sent_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    receipt = models.CharField(
        max_length=11,
        choices=Receipt,
        blank=True,
        help_text="The carrier's report of the delivery. Empty if there is none yet.",
    )
    refusal = models.CharField(
        max_length=32, blank=True, help_text="Why the carrier did not accept or deliver it."
    )
    # Only a new message has this attribute. It maps each counted field to its digests, with one digest per
    # key.
    alike: dict[str, list[str]]

    class Meta:
        verbose_name = "text"
        indexes: ClassVar = [
            models.Index(fields=["phone_digest", "created_at"]),
            models.Index("address_digest", "created_at", name="sms_address", condition=_COUNTED),
            models.Index("site_digest", "created_at", name="sms_site", condition=_COUNTED & quota.HAS_SITE),
            models.Index("range_digest", "created_at", name="sms_range", condition=_COUNTED),
            models.Index("created_at", name="sms_counted", condition=_COUNTED),
            models.Index(fields=["checkout_uuid"]),
            # The query that claims a message uses this index too. Each claim changes `due_at`. If `due_at`
            # were indexed, each claim would therefore add an entry to every index of the table.
            models.Index("ends_at", name="sms_open", condition=models.Q(ended_at=None)),
        ]

    def __str__(self) -> str:
        return str(self.Kind(self.kind).label)


class SmsDay(models.Model):
    """How many SMS messages of one day count against a merchant's budget or the total budget."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    day = models.DateField(help_text="In UTC.")
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, null=True, blank=True, help_text="Null for all merchants."
    )
    count = models.PositiveIntegerField()
    warned_at = models.DateTimeField(null=True, blank=True, help_text="When the operators were notified.")

    class Meta:
        verbose_name = "day of texts"
        verbose_name_plural = "days of texts"
        constraints: ClassVar = [
            models.UniqueConstraint(
                "day", "merchant", nulls_distinct=False, name="a_days_texts_are_counted_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.count}"


class SmsStop(models.Model):
    """A number whose owner has stopped all texts except codes. Only the number's digest is stored. Rule sms.stop."""

    number = models.CharField(
        primary_key=True, max_length=30, help_text="The first half of the digest of the phone number."
    )
    key_mark = models.CharField(
        max_length=KEY_MARK_LETTERS,
        blank=True,
        default="",
        db_default="",
        help_text="Identifies the LOOKUP_KEY of the digest.",
    )
    stopped_at = models.DateTimeField()

    class Meta:
        verbose_name = "number that stopped texts"
        verbose_name_plural = "numbers that stopped texts"

    def __str__(self) -> str:
        return f"Stopped on {self.stopped_at.day} {self.stopped_at:%b %Y}"


class CardTry(models.Model):
    """A card that was entered on the hosted page.

    It counts towards the limits on declined cards until the service knows that the bank did not refuse it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    subject = models.UUIDField(help_text="The checkout's or payment request's uuid.")
    card_token = models.CharField(max_length=255, blank=True)
    phone_digest = models.CharField(max_length=64)
    address_digest = models.CharField(max_length=64)
    site_digest = quota.site_digest_field()
    is_counted = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index("phone_digest", "created_at", name="card_try_phone", condition=_COUNTED),
            models.Index("address_digest", "created_at", name="card_try_address", condition=_COUNTED),
            models.Index(
                "site_digest", "created_at", name="card_try_site", condition=_COUNTED & quota.HAS_SITE
            ),
            # The limits on pledges count every card, including the cards that were not refused.
            models.Index("subject", "created_at", name="card_try_of_subject"),
            models.Index("phone_digest", "created_at", name="card_try_of_number"),
        ]
        verbose_name_plural = "card tries"

    def __str__(self) -> str:
        return "Card try"


class ShareTake(models.Model):
    """A share taken through a group link. It counts towards the limit for its network (rule group.takes)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    address_digest = models.CharField(max_length=64)
    site_digest = quota.site_digest_field()
    created_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["address_digest", "created_at"], name="share_take_address"),
            models.Index("site_digest", "created_at", name="share_take_site", condition=quota.HAS_SITE),
        ]

    def __str__(self) -> str:
        return "Share taken"


class CspReport(models.Model):
    """How often browsers reported the same CSP violation on one kind of page.

    Rule card_page.reports.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    page = models.CharField(max_length=20, help_text="The kind of page.")
    directive = models.CharField(max_length=20, help_text="The directive of the policy.")
    blocked = models.CharField(max_length=100, help_text="The host that was blocked, or a keyword.")
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    count = models.PositiveBigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["page", "directive", "blocked"], name="a_violation_has_one_row")
        ]
        verbose_name = "CSP report"

    def __str__(self) -> str:
        return f"{self.page}: {self.directive} {self.blocked}"


class OptInText(models.Model):
    """A version of a merchant's opt-in text, as payers see it. Append-only: a new text gets a new version."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    version = models.PositiveIntegerField()
    language = models.CharField(max_length=8, blank=True)
    is_ours = models.BooleanField(
        default=False, help_text="Whether it is the service's text. Otherwise the merchant wrote it."
    )
    text = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "opt-in wording"
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", "version", name="an_opt_in_text_has_one_wording")
        ]

    def __str__(self) -> str:
        return f"Version {self.version}"


class OptIn(models.Model):
    """A person's opt-in, with the text of the box and where it was shown. Append-only.

    The e-mail address of a person's newest opt-in is the current one.
    """

    class Placement(models.TextChoices):
        SUCCESS_PAGE = "success_page", "Page after the payment"
        PAY_LINK = "pay_link", "Pay link"
        APP = "app", "App"
        EMAIL_LINK = "email_link", "Link in an e-mail"
        OTHER = "other", "Other"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    text = models.ForeignKey(OptInText, on_delete=models.PROTECT)
    person = models.ForeignKey(MerchantCustomer, on_delete=models.PROTECT)
    checkout_uuid = models.UUIDField()
    share_uuid = models.UUIDField(null=True, blank=True, help_text="The mate's share.")
    email = EncryptedTextField()
    email_digest = models.CharField(max_length=64)
    placement = models.CharField(max_length=20, choices=Placement)
    opted_in_at = models.DateTimeField()

    class Meta:
        verbose_name = "opt-in"
        indexes: ClassVar = [models.Index(fields=["checkout_uuid"]), models.Index(fields=["email_digest"])]

    def __str__(self) -> str:
        return f"Opt-in\N{NO-BREAK SPACE}· {self.Placement(self.placement).label}"
