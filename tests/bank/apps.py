import os

from django.apps import AppConfig


class BankConfig(AppConfig):
    name, label = "tests.bank", "remote_bank"

    def ready(self) -> None:
        """Send this process's bank calls to BANK_URL. The bank's own process runs without this variable."""
        from tests.bank import http_client

        if url := os.environ.get("BANK_URL"):
            http_client.connect(url)
