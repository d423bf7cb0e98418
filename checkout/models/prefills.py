"""Customer data that a merchant sends together with an order."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Left

from checkout.models.orders import Checkout
from config.lib.crypto import DIGEST_LETTERS, EncryptedTextField, FindableTextField


class Prefill(models.Model):
    """Customer data from the merchant, with which the order's page is prefilled.

    The data is deleted a day after the order has ended. It has its own table, so orders without such data use no space
    for it, and reads and updates of an order do not include it. Rule prefill.kept.
    """

    checkout = models.OneToOneField(
        Checkout, on_delete=models.PROTECT, primary_key=True, related_name="prefill"
    )
    phone = FindableTextField(blank=True, help_text="E.164. Empty if the merchant sent no number.")
    name = EncryptedTextField(blank=True)
    locale = models.CharField(max_length=35, blank=True, help_text="As the merchant sent it.")

    class Meta:
        indexes: ClassVar = [models.Index(Left("phone", DIGEST_LETTERS), name="prefill_number")]

    def __str__(self) -> str:
        return f"•••• {self.phone[-4:]}" if self.phone else "no number"
