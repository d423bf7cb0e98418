"""How many SMS messages a merchant, and all together, may have a day. Those whose order or share was paid do not count.

Rules sms.budgets, sms.paid.
"""

from collections import Counter
from datetime import date, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest
from uuid_utils.compat import uuid7

from checkout.models import Checkout, PaymentRequest
from config.lib import batches, clock
from hosted_page.models import SmsDay, SmsMessage
from payments import discrepancies
from payments.models import Merchant

DAY = timedelta(days=1)
WARNED_AT = 0.8  # of a budget the operators are told
KEPT = timedelta(days=30)
_SPEND = """
INSERT INTO hosted_page_smsday AS d (id, day, merchant_id, count) VALUES (%s, %s, %s, 1)
ON CONFLICT (day, merchant_id) DO UPDATE SET count = d.count + 1 WHERE d.count < %s
RETURNING count
"""


def spend_of_merchant(merchant: Merchant, now: datetime) -> datetime | None:
    """Count an SMS message of today's for a merchant; return when one more may follow if there may be none now.

    Before `spend_of_all`, always: whoever counts holds both until the end of the transaction.
    """
    return _spend(merchant.pk, settings.SMS_MERCHANT_BUDGET, now)


def spend_of_all(now: datetime) -> datetime | None:
    """As `spend_of_merchant`, for all merchants together."""
    return _spend(None, settings.SMS_TOTAL_BUDGET, now)


def _spend(merchant_uuid: UUID | None, budget: int, now: datetime) -> datetime | None:
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
    if budget <= 0:
        return tomorrow
    with connection.cursor() as cursor:
        cursor.execute(_SPEND, [uuid7(), now.date(), merchant_uuid, budget])
        return None if cursor.fetchone() else tomorrow


def unpaid(messages: QuerySet[SmsMessage]) -> QuerySet[SmsMessage]:
    """Return those of the SMS messages that count: nothing was paid by whoever got them."""
    return messages.filter(is_counted=True).exclude(_was_paid())


def _was_paid() -> Q:
    orders = Checkout.objects.filter(pk=OuterRef("subject"), captured_at__isnull=False)
    shares = PaymentRequest.objects.filter(pk=OuterRef("subject"), paid_at__isnull=False)
    return ~Q(kind=SmsMessage.Kind.RETURN) & (Q(Exists(orders)) | Q(Exists(shares)))


def give_back() -> int:
    """Let what was paid count no more; return how many SMS messages that were."""
    since = clock.now() - DAY
    counted = SmsMessage.objects.filter(_was_paid(), is_counted=True, created_at__gt=since)
    return batches.repeat(lambda rows: _give_back(counted, rows))


def _give_back(counted: QuerySet[SmsMessage], rows: int) -> int:
    found = list(counted.select_for_update(of=("self",), skip_locked=True)[:rows])
    SmsMessage.objects.filter(pk__in=[message.pk for message in found]).update(is_counted=False)
    of_merchants: Counter[tuple[UUID, date]] = Counter()
    for message in found:
        of_merchants[message.merchant_id, message.created_at.date()] += 1
    for (merchant_uuid, day), count in sorted(of_merchants.items()):
        SmsDay.objects.filter(merchant=merchant_uuid, day=day).update(count=Greatest(F("count") - count, 0))
    for day, count in sorted(Counter(message.created_at.date() for message in found).items()):
        SmsDay.objects.filter(merchant=None, day=day).update(count=Greatest(F("count") - count, 0))
    return len(found)


def warn() -> None:
    """Leave it for the operators, by mail too, that most of a day's budget is used up: once a day for each."""
    now = clock.now()
    nearly_of_all = Q(merchant=None, count__gte=WARNED_AT * settings.SMS_TOTAL_BUDGET)
    nearly_of_one = Q(merchant__isnull=False, count__gte=WARNED_AT * settings.SMS_MERCHANT_BUDGET)
    with transaction.atomic():
        days = SmsDay.objects.select_for_update(of=("self",), skip_locked=True)
        for day in days.filter(nearly_of_all | nearly_of_one, day=now.date(), warned_at=None):
            kind = "texts_of_merchant_nearly_used_up" if day.merchant_id else "texts_of_all_nearly_used_up"
            discrepancies.report(kind, day.pk, merchant=day.merchant_id, texts=day.count)
            SmsDay.objects.filter(pk=day.pk).update(warned_at=now)


def delete_old() -> None:
    """Remove the counts of days that are long over."""
    batches.delete(SmsDay.objects.filter(day__lt=(clock.now() - KEPT).date()))
