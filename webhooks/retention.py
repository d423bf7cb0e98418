"""Deletes personal data after a week, and events with their log after 30 days (rule secret.retention).

In small batches, each a transaction of its own; what has not ended is never deleted.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef

from config.lib import batches, clock
from webhooks import statements
from webhooks.models import Delivery, Endpoint, SigningSecret, Subscription

PERSONAL_FOR = timedelta(days=7)
ENDED_FOR = timedelta(hours=1)  # by then no event is emitted to a subscription read before its end
ROWS = 500


def delete_personal() -> int:
    """Delete the bodies of personal events that ended more than 7 days ago; return how many."""
    return _in_batches(statements.DELETE_PERSONAL, {"before": clock.now() - PERSONAL_FOR})


def delete_old() -> int:
    """Delete events older than WEBHOOK_RETENTION, with deliveries and attempts; return how many."""
    before = clock.now() - settings.WEBHOOK_RETENTION
    return _in_batches(statements.DELETE_OLD, {"before": before, "first_id": clock.first_id(before)})


def delete_ended() -> int:
    """Delete subscriptions that ended an hour ago and have no deliveries left, with their secrets; return how many."""
    before = clock.now() - ENDED_FOR
    return batches.repeat(lambda rows: _delete_ended(before, rows), rows=ROWS)


def _delete_ended(before: datetime, rows: int) -> int:
    old = Subscription.objects.filter(ended_at__lt=before)
    unused = old.exclude(Exists(Delivery.objects.filter(subscription=OuterRef("pk"))))
    found = list(unused.values_list("pk", flat=True)[:rows])
    SigningSecret.objects.filter(subscription__in=found).delete()
    Endpoint.objects.filter(subscription__in=found).delete()
    Subscription.objects.filter(pk__in=found).delete()
    return len(found)


def _in_batches(statement: str, parameters: dict[str, Any]) -> int:
    def step(rows: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters | {"rows": rows})
            return int(cursor.rowcount)

    return batches.repeat(step, rows=ROWS)
