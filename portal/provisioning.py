"""Creates a merchant with its first API key and its owner."""

import secrets
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from payments.models import Merchant
from portal import keys
from portal.models import Membership, Role, User


class EmailTaken(Exception):
    """Raised if a different person already signs in with this e-mail address."""


class NewMerchant(NamedTuple):
    """A new merchant and its credentials, which are shown once."""

    merchant: Merchant
    client_id: str
    client_secret: str
    portal_email: str
    portal_password: str


def create_merchant(name: str, *, email: str) -> NewMerchant:
    """Create a merchant with one API client and an owner who can sign in. Raises EmailTaken.

    In the sandbox, the merchant's marketing opt-in is enabled.
    """
    password = secrets.token_urlsafe(16)
    owner = User.objects.new_user(email, password)
    with transaction.atomic(durable=True):
        if User.objects.filter(email__iexact=email).exists():
            raise EmailTaken
        merchant = Merchant.objects.create(name=name, opt_in_enabled=settings.SANDBOX)
        owner.save(force_insert=True)
        Membership.objects.create(merchant=merchant, user=owner, role=Role.OWNER)
        client, client_secret = keys.create_client(merchant, "First key", holder=owner)
    return NewMerchant(merchant, client.client_id, client_secret, email, password)
