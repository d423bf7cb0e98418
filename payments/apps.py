from django.apps import AppConfig
from django.db.models.signals import post_migrate

from payments import patience


class PaymentsConfig(AppConfig):
    name = "payments"

    def ready(self) -> None:
        post_migrate.connect(patience.set_limits, sender=self)
