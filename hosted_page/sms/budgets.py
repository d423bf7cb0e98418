"""Counts SMS messages against daily budgets, per merchant and in total (rules sms.budgets, sms.paid).

A message no longer counts when its order or share is paid.
"""

from collections import Counter
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest
from uuid_utils.compat import uuid7

from checkout.models import Checkout, PaymentRequest
from config.lib import batches, clock
from config.lib.database import queries
from hosted_page import statements
from hosted_page.models import SmsDay, SmsMessage
from payments.discrepancies import kinds, reporting

DAY = timedelta(days=1)
WARNING_SHARE = 0.8  # fraction of a budget at which the operators are warned
RETENTION = timedelta(days=30)
MERCHANT_BUDGET, TOTAL_BUDGET = "of a merchant", "of all"


def spend(merchant_uuid: UUID, now: datetime) -> str | None:
    """Count an SMS message against the merchant's budget and the total budget.

    Return MERCHANT_BUDGET or TOTAL_BUDGET if that budget is used up, otherwise None. If a budget is used up,
    the caller must roll back the transaction.
    """
    parameters: dict[str, Any] = {
        "id": uuid7(),
        "id_of_all": uuid7(),
        "day": now.date(),
        "merchant": merchant_uuid,
    }
    parameters |= {"budget": settings.SMS_MERCHANT_BUDGET, "total": settings.SMS_TOTAL_BUDGET}
    is_in_merchant_budget, is_in_total_budget = queries.row(statements.SPEND_SMS_BUDGETS, parameters)
    if not is_in_merchant_budget:
        return MERCHANT_BUDGET
    return None if is_in_total_budget else TOTAL_BUDGET


def next_day_start(now: datetime) -> datetime:
    """Return the time at which the budgets of the next day begin."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + DAY


def counted_messages(messages: QuerySet[SmsMessage]) -> QuerySet[SmsMessage]:
    """Return the SMS messages that count against a budget.

    When the order or share of a message is paid, the message stops counting, unless its kind always counts.
    """
    return messages.filter(is_counted=True).exclude(_was_paid())


def _was_paid() -> Q:
    orders = Checkout.objects.filter(pk=OuterRef("subject"), captured_at__isnull=False)
    shares = PaymentRequest.objects.filter(pk=OuterRef("subject"), paid_at__isnull=False)
    uncounted = [SmsMessage.Kind.RETURN, SmsMessage.Kind.LEAD, SmsMessage.Kind.RECEIPT]
    return ~Q(kind__in=uncounted) & (Q(Exists(orders)) | Q(Exists(shares)))


def stop_counting_paid() -> int:
    """Stop counting the SMS messages of paid orders and shares. Return how many messages this affected."""
    since = clock.now() - DAY
    messages = SmsMessage.objects.filter(_was_paid(), is_counted=True, created_at__gt=since)
    return batches.repeat(lambda batch_size: _stop_counting(messages, batch_size))


def _stop_counting(messages: QuerySet[SmsMessage], batch_size: int) -> int:
    batch = list(messages.select_for_update(of=("self",), no_key=True, skip_locked=True)[:batch_size])
    SmsMessage.objects.filter(pk__in=[message.pk for message in batch]).update(is_counted=False)
    counts: Counter[tuple[UUID, date]] = Counter()
    for message in batch:
        counts[message.merchant_id, message.created_at.date()] += 1
    for (merchant_uuid, day), count in sorted(counts.items()):
        SmsDay.objects.filter(merchant=merchant_uuid, day=day).update(count=Greatest(F("count") - count, 0))
    for day, count in sorted(Counter(message.created_at.date() for message in batch).items()):
        SmsDay.objects.filter(merchant=None, day=day).update(count=Greatest(F("count") - count, 0))
    return len(batch)


def warn_operators() -> None:
    """Report to the operators each of today's budgets of which at least 80 % is used, once per budget and day."""
    now = clock.now()
    is_total_nearly_used = Q(merchant=None, count__gte=WARNING_SHARE * settings.SMS_TOTAL_BUDGET)
    is_merchant_nearly_used = Q(
        merchant__isnull=False, count__gte=WARNING_SHARE * settings.SMS_MERCHANT_BUDGET
    )
    with transaction.atomic(durable=True):
        days = SmsDay.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
        for day in days.filter(
            is_total_nearly_used | is_merchant_nearly_used, day=now.date(), warned_at=None
        ):
            kind = kinds.SMS_BUDGET_OF_MERCHANT if day.merchant_id else kinds.SMS_BUDGET_OF_ALL
            reporting.report(kind, day.pk, merchant=day.merchant_id, sms_messages=day.count)
            SmsDay.objects.filter(pk=day.pk).update(warned_at=now)


def delete_old() -> None:
    """Delete the daily counts that are older than thirty days."""
    batches.delete(SmsDay.objects.filter(day__lt=(clock.now() - RETENTION).date()))
