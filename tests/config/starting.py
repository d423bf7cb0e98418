"""Functions that load the settings with given environment variables."""

import os
import runpy
from pathlib import Path
from typing import Any
from unittest import mock

from django.core.exceptions import ImproperlyConfigured

from config import settings

SETTINGS = Path(settings.__file__)
PRODUCTION = {
    "ENVIRONMENT": "production",
    "BASE_URL": "https://checkout.example",
    "PROVIDER": "payments.providers.stripe.adapter.StripeProvider",
    "STRIPE_SECRET_KEY": "sk_live_0aZ",
    "STRIPE_PUBLISHABLE_KEY": "pk_live_0aZ",
    "STRIPE_WEBHOOK_SECRET": "whsec_0aZ",
    "SMS_SENDER": "adapter.of.production.Sender",
    "ERASURES_FILE": "/var/lib/checkout/kept/erasures",
}
CLEARED = dict.fromkeys(("BASE_URL", "PROVIDER", "SMS_SENDER", "CHECKOUT_PAGE_URL"), "")


def read(variables: dict[str, str]) -> dict[str, Any]:
    """Load the settings with these environment variables, and return them.

    Raise ImproperlyConfigured if a variable is wrong.
    """
    with mock.patch.dict(os.environ, CLEARED | variables):
        return runpy.run_path(str(SETTINGS))


def refusal(variables: dict[str, str]) -> str:
    """Return why the service does not start with these variables, or "" if it starts."""
    try:
        read(variables)
    except ImproperlyConfigured as refused:
        return str(refused)
    return ""
