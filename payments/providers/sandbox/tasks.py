"""Celery tasks for the sandbox bank: its pump, and the deletion of old visits and notifications."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from config.lib import batches, clock
from payments.providers.sandbox import notifications
from payments.providers.sandbox.models import BankNotification, CardSession, CardToken

VISITS_KEPT = timedelta(days=1)
NOTIFICATIONS_KEPT = timedelta(days=30)


@shared_task
def send_notifications() -> None:
    """If there is a sandbox bank, settle its due calls and send its notifications."""
    if settings.SANDBOX:
        notifications.send_due()


@shared_task
def delete_old_visits() -> None:
    """Delete card page visits and card tokens after one day, and finished notifications after thirty days."""
    a_day_ago = clock.first_id(clock.now() - VISITS_KEPT)
    batches.delete(CardSession.objects.filter(pk__lt=a_day_ago))
    batches.delete(CardToken.objects.filter(pk__lt=a_day_ago))
    batches.delete(
        BankNotification.objects.filter(pk__lt=clock.first_id(clock.now() - NOTIFICATIONS_KEPT), due_at=None)
    )
