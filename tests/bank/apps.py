import os

from django.apps import AppConfig


class BankConfig(AppConfig):
    name, label = "tests.bank", "remote_bank"

    def ready(self) -> None:
        """Connect to the bank that the environment names. The bank's own process has no such name."""
        from tests.bank import http_client

        if url := os.environ.get("BANK_URL"):
            http_client.connect(url)
