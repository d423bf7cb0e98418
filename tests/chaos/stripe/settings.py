"""The service's settings as in a local run, with Stripe as its provider. `STRIPE_API` is the peer."""

import os

from config.settings import *  # noqa: F403 - settings are all of the module's names
from config.settings import INSTALLED_APPS, STRIPE_PROVIDER

PROVIDER = STRIPE_PROVIDER
STRIPE_SECRET_KEY, STRIPE_PUBLISHABLE_KEY = "sk_test_peer", "pk_test_peer"
STRIPE_WEBHOOK_SECRETS = [os.environ["STRIPE_WEBHOOK_SECRET"]]
INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos.stripe.apps.PayersConfig"]
