import os

from django.apps import AppConfig


class PayersConfig(AppConfig):
    name, label = "tests.chaos.stripe", "payers_at_stripe"

    def ready(self) -> None:
        from tests.chaos.stripe import payers

        payers.connect(os.environ["STRIPE_API"])
