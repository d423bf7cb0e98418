"""Fields that appear in several API responses and events about checkouts."""

from functools import partial

from rest_framework import serializers as drf

from checkout.states import Status, VoidReason
from config.lib.api import fields
from config.lib.api.responses import OpenChoice, Time
from payments import money

CHECKOUT_UUID = partial(
    drf.UUIDField, help_text="The id of the checkout, for capture, cancel, refund, reads and events."
)
MERCHANT_ORDER_ID = partial(fields.Text, help_text="Your own reference for the order. It can repeat.")
STATUS = partial(OpenChoice, Status, help_text="The status of the checkout; see States.")
AMOUNT = partial(
    drf.IntegerField,
    min_value=1,
    max_value=money.MAXIMUM,
    help_text="The amount in minor units, such as pence.",
)
CURRENCY = partial(fields.Currency, help_text="ISO 4217 code in upper case, such as `GBP`.")
CREATED_AT = partial(Time, help_text="When it was created.")
VOID_REASON = partial(
    OpenChoice,
    VoidReason,
    help_text="`merchant_cancel`: you cancelled it. `auth_expired`: it was not captured in time.",
)
