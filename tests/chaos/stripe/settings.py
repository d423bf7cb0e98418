"""The service's settings for a local run with Stripe as the provider. `STRIPE_API` is the peer's address."""

import os

from config.settings import *  # noqa: F403 - Django reads all names of a settings module
from config.settings import INSTALLED_APPS, STRIPE_PROVIDER

PROVIDER = STRIPE_PROVIDER
STRIPE_SECRET_KEY, STRIPE_PUBLISHABLE_KEY = "sk_test_peer", "pk_test_peer"
STRIPE_WEBHOOK_SECRETS = [os.environ["STRIPE_WEBHOOK_SECRET"]]
INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos.stripe.apps.PayersConfig"]
