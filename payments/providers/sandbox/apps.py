from django.apps import AppConfig


class BankConfig(AppConfig):
    name = "payments.providers.sandbox"
    label = "bank"
