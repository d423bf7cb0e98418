from django.apps import AppConfig
from django.db.models.signals import post_migrate

from config.lib.database import limits


class PaymentsConfig(AppConfig):
    name = "payments"

    def ready(self) -> None:
        post_migrate.connect(limits.set_limits, sender=self)
