from django.apps import AppConfig
from django.db.models.signals import post_migrate

from payments import database_limits


class PaymentsConfig(AppConfig):
    name = "payments"

    def ready(self) -> None:
        post_migrate.connect(database_limits.set_limits, sender=self)
