"""The hosted page's pumps."""

from typing import Any

from celery import shared_task, signals

from hosted_page.sms import budgets, outbox, sending
from hosted_page.steps import declines

STOP_SECONDS = 3.0  # for what is being sent when the worker ends


@shared_task
def send_sms_messages() -> None:
    """Have the due SMS messages sent."""
    sending.wake()


@shared_task
def watch_sms_budgets() -> None:
    """Stop counting SMS messages of what was paid, and warn the operators of budgets that are nearly used up."""
    budgets.give_back()
    budgets.warn()


@shared_task
def delete_old_sms_messages() -> None:
    """Delete SMS messages and codes that no limit looks at any more."""
    outbox.delete_old()


@shared_task
def delete_old_card_tries() -> None:
    """Delete the tries of cards that no limit looks at any more."""
    declines.delete_old()


@signals.worker_shutdown.connect
def _stop(**_: Any) -> None:
    sending.stop(STOP_SECONDS)
