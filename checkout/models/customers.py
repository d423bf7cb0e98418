"""Customers, and the ids by which merchants identify them."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Left
from uuid_utils.compat import uuid7

from config.lib.crypto import DIGEST_LETTERS, FindableTextField
from payments.models import Merchant


class Customer(models.Model):
    """A person, who is identified by a verified phone number. Customers are shared by all merchants."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    phone = FindableTextField(null=True, blank=True, help_text="E.164. Null after an erasure.")
    name = models.CharField(max_length=60, blank=True, help_text="As the customer last entered it.")
    created_at = models.DateTimeField(auto_now_add=True)
    erased_at = models.DateTimeField(null=True, blank=True)
    cards_erased_at = models.DateTimeField(
        null=True, blank=True, help_text="When the last four digits of their cards were erased too."
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(Left("phone", DIGEST_LETTERS), name="one_customer_a_number")
        ]
        indexes: ClassVar = [
            models.Index("id", name="customer_known", condition=Q(erased_at=None)),
            models.Index(
                "erased_at",
                name="customer_cards",
                condition=Q(erased_at__isnull=False, cards_erased_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"•••• {self.phone[-4:]}" if self.phone else "erased"


class MerchantCustomer(models.Model):
    """The id by which one merchant identifies a customer. It is random, and each merchant has a different id."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    customer = models.ForeignKey(
        Customer,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        help_text="Null for a person whose number is not verified.",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("merchant", "customer", name="one_id_per_person_and_merchant")
        ]

    def __str__(self) -> str:
        return str(self.id)
