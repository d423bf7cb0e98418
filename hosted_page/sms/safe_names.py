"""Shortens names for SMS messages and mails to strangers, so that a name cannot contain a message.

Rule sms.invitation.
"""

import unicodedata

from django.utils.translation import gettext as _

from checkout.models import Checkout
from hosted_page.payment_target import lead_name
from payments.models import Merchant

MAX_LETTERS = 30


def safe_shop_name(merchant: Merchant) -> str:
    """Return a merchant's name for an SMS message or a mail."""
    return safe_name(merchant.name) or _("the shop")


def safe_lead_name(checkout: Checkout) -> str:
    """Return the lead's name for an SMS message to a mate."""
    return safe_name(lead_name(checkout)) or _("Your mate")


def safe_name(name: str) -> str:
    """Return at most 30 letters of a name, without digits and without the characters of web addresses."""
    name_characters = "".join(
        character for character in unicodedata.normalize("NFKC", name) if _is_name_character(character)
    )
    return " ".join(name_characters.split())[:MAX_LETTERS].strip()


def _is_name_character(character: str) -> bool:
    return character.isspace() or character in "'’-" or unicodedata.category(character)[0] in "LM"
