"""Celery tasks for webhooks. They wake the sender and delete old rows.

The sender stops when its worker stops.
"""

from typing import Any

from celery import shared_task, signals
from django.conf import settings

from webhooks import delivery_sender, retention

# When the worker stops, it waits this long for attempts in flight. Normally, this is longer than an attempt can take.
# On a developer's machine it is shorter, so that Ctrl-C works quickly.
DRAIN_SECONDS = 5.0 if settings.LOCAL else 16.0

# The function is registered directly as a task, without a wrapper.
make_partitions = shared_task(retention.create_partitions, name="webhooks.tasks.make_partitions")


@shared_task(name="webhooks.tasks.deliver_due")
def deliver_due() -> None:
    """Wake this worker's sender, because deliveries might be due."""
    delivery_sender.wake()


@shared_task
def delete_personal() -> None:
    """Release or park the deliveries that wait for an approved address, and delete old personal data."""
    retention.release_approved()
    retention.park_unapproved()
    retention.delete_personal_bodies()


@shared_task
def delete_old_events() -> None:
    """Drop old events, deliveries and attempts, then delete ended subscriptions without deliveries."""
    retention.drop_old_partitions()
    retention.delete_ended_subscriptions()


@signals.worker_shutdown.connect
def _drain_queue(**_: Any) -> None:
    delivery_sender.stop(DRAIN_SECONDS)
