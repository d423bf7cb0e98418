"""Celery's tasks of webhooks: waking the sender, deleting what is old; and the sender's end with its worker."""

from typing import Any

from celery import shared_task, signals
from django.conf import settings

from webhooks import loop, retention

# Longer than an attempt may take; on a developer's machine Ctrl-C comes first.
DRAIN_SECONDS = 5.0 if settings.LOCAL else 16.0

# A function of another module, unchanged.
make_partitions = shared_task(retention.make_ahead, name="webhooks.tasks.make_partitions")


@shared_task(name="webhooks.tasks.deliver_due")
def deliver_due() -> None:
    """Wake this worker's sender: deliveries may be due."""
    loop.wake()


@shared_task
def delete_personal() -> None:
    """Release or park personal events that waited for an approval, and delete the bodies of those that ended."""
    retention.release_missed()
    retention.park_held()
    retention.delete_personal()


@shared_task
def delete_old_events() -> None:
    """Drop events, deliveries and attempts that have been kept long enough, then subscriptions that have none left."""
    retention.drop_old()
    retention.delete_ended()


@signals.worker_shutdown.connect
def _drain(**_: Any) -> None:
    loop.stop(DRAIN_SECONDS)
