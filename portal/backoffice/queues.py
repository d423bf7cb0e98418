"""The rows that wait for each pump, and whether they have waited too long.

Each queue needs one cheap query.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Model

from checkout import expiry
from checkout.states import Status
from config.lib.database import replica
from config.schedule import DELIVER_DUE, FINISH_OPERATIONS
from hosted_page.models import SmsMessage
from payments import operation_queue
from payments.models import Operation
from payments.providers.sandbox.models import BankNotification
from portal.backoffice import ages, pumps
from portal.models import OutboundEmail
from webhooks import health

EXPIRE_DUE = "checkout.tasks.expire_due"
SMS_MESSAGES = "hosted_page.tasks.send_sms_messages"
MAILS = "portal.tasks.send_emails"
BANK = "payments.providers.sandbox.tasks.send_notifications"

# The longest waits for which rows do not count as late.
USUAL_PATIENCE = timedelta(seconds=5)  # a pump starts every second, or every three seconds at worst
# Webhooks and texts wait for endpoints and carriers that can respond slowly.
PACED_PATIENCE = timedelta(minutes=1)
MAIL_PATIENCE = timedelta(minutes=15)  # a mail server can ask us to try again in some minutes (greylisting)
REFUND_PATIENCE = timedelta(hours=24)  # a provider can need a day for a refund
FINE, LATE = "fine", "late"
LATE_AFTER = f"{USUAL_PATIENCE.seconds} s"
LATE_MEANS = (
    f"A job is late after {LATE_AFTER}. Other webhooks and texts are late after"
    f" {ages.in_words(PACED_PATIENCE)}, emails after {ages.in_words(MAIL_PATIENCE)}, refunds after"
    f" {ages.in_words(REFUND_PATIENCE)}."
)

Oldest = Callable[[datetime], datetime | None]


@dataclass(frozen=True)
class Queue:
    """Rows that wait for a pump. `since` is the time at which the oldest row became due, or None if no row waits."""

    title: str
    pump: str
    task: str
    since: datetime | None
    age: str
    verdict: str


def read_queues(now: datetime) -> list[Queue]:
    """Return the current state of all queues."""
    return [_build_queue(*row, now=now) for row in TABLE if row[1] != BANK or settings.SANDBOX]


def judge_wait(age: timedelta, patience: timedelta) -> str:
    """Return LATE if rows have waited longer than `patience`, else FINE."""
    return LATE if age > patience else FINE


def _build_queue(title: str, pump: str, patience: timedelta, oldest: Oldest, *, now: datetime) -> Queue:
    since = oldest(now)
    age = timedelta() if since is None else now - since
    words = "–" if since is None else ages.in_words(age)
    return Queue(title, pumps.TITLES[pump], pump, since, words, judge_wait(age, patience))


def _oldest_of(model: type[Model], column: str, **conditions: Any) -> Oldest:
    """Return a function that finds the time at which the oldest due row became due.

    `column` has the due times, and `conditions` select the rows.
    """

    def oldest(now: datetime) -> datetime | None:
        rows = model._base_manager.filter(**conditions, **{f"{column}__lte": now}).order_by(column)
        return rows.values_list(column, flat=True).first()

    return oldest


def _oldest_text(now: datetime) -> datetime | None:
    """Return the creation time of the oldest waiting SMS message. Each failed attempt moves its `due_at` ahead.

    The query reads from the primary, because messages with codes are not copied to replicas.
    """
    with replica.use_primary():
        return _oldest_of(SmsMessage, "created_at", ended_at=None, due_at__isnull=False)(now)


def _oldest_refund(now: datetime) -> datetime | None:
    """Return the time at which the oldest open refund began.

    No index serves only this query. It still reads few rows, because few operations are open.
    """
    refunds = Operation.objects.filter(kind=Operation.Kind.REFUND, refund_uuid__isnull=False)
    rows = refunds.filter(state__in=Operation.NOT_ENDED)
    return rows.order_by("created_at").values_list("created_at", flat=True).first()


# For each queue: its title, its pump, the longest wait that is not late, and the function that finds the time at
# which the oldest row became due.
TABLE: tuple[tuple[str, str, timedelta, Oldest], ...] = (
    ("Operations to finish", FINISH_OPERATIONS, USUAL_PATIENCE, operation_queue.oldest_due_at),
    ("Holds to release", EXPIRE_DUE, USUAL_PATIENCE, lambda now: expiry.oldest_deadline(Status.AUTHORIZED)),
    (
        "Unpaid checkouts to end",
        EXPIRE_DUE,
        USUAL_PATIENCE,
        lambda now: expiry.oldest_deadline(Status.CREATED),
    ),
    (
        "Urgent webhooks to send",
        DELIVER_DUE,
        USUAL_PATIENCE,
        lambda now: health.oldest_due_of_all(now, is_urgent=True),
    ),
    (
        "Other webhooks to send",
        DELIVER_DUE,
        PACED_PATIENCE,
        lambda now: health.oldest_due_of_all(now, is_urgent=False),
    ),
    ("Texts to send", SMS_MESSAGES, PACED_PATIENCE, _oldest_text),
    (
        "Emails to send",
        MAILS,
        MAIL_PATIENCE,
        _oldest_of(OutboundEmail, "created_at", next_try_at__isnull=False),
    ),
    ("Refunds to settle", FINISH_OPERATIONS, REFUND_PATIENCE, _oldest_refund),
    ("The bank’s notifications", BANK, USUAL_PATIENCE, _oldest_of(BankNotification, "due_at")),
)
