"""The bank's pump."""

from celery import shared_task
from django.conf import settings

from payments.providers.sandbox import notices


@shared_task
def send_notices() -> None:
    """Settle the refunds that are due and tell of what has ended, where the bank lives in this process."""
    if settings.SANDBOX and not settings.BANK_URL:
        notices.send_due()
