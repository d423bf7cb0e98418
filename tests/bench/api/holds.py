"""Creates many open holds. Each hold also gets rows in the bank's books, so that the bank can void it."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from uuid_utils.compat import uuid7

from checkout.models import Bill, Change, Checkout
from config.lib import clock
from payments.models import Merchant, Operation, Payment
from payments.provider import Verdict
from payments.providers.sandbox.models import Call, Charge
from tests import factories
from webhooks.models import Event, EventType

FAR = timedelta(hours=1)
AMOUNT = 9000
CHUNK = 2000
ORDER = "A-20417"  # the merchant's id for each order

_HOLD = """
UPDATE checkout_checkout c
SET status = 'authorized', payment_id = p.id, authorized_at = c.created_at, capture_before = %(until)s
FROM payments_payment p WHERE p.subject = c.id AND c.merchant_id = %(merchant)s AND c.merchant_order_id = %(order)s
"""
SPREAD = """
UPDATE checkout_checkout c
SET capture_before = given.start + make_interval(secs => given.within * n.place / given.count),
    authorized_at = given.start - interval '2 minutes'
FROM (VALUES (%s::timestamptz, %s::float, %s::int)) AS given (start, within, count),
    (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM checkout_checkout
        WHERE merchant_id = %s AND merchant_order_id = %s
    ) n
WHERE c.id = n.id
"""
# If an order is still held, its lag is the time from its deadline until now.
LAGS = """
SELECT percentile_cont(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY lag), count(*) FILTER (WHERE is_voided)
FROM (
    SELECT h.id IS NOT NULL AS is_voided,
           extract(epoch FROM coalesce(pg_xact_commit_timestamp(h.xmin), clock_timestamp()) - c.capture_before)::float
               AS lag
    FROM checkout_checkout c LEFT JOIN checkout_change h ON h.checkout_id = c.id AND h.to = 'voided'
    WHERE c.merchant_id = %s AND c.merchant_order_id = %s
) lags
"""


def make(merchant: Merchant, count: int) -> None:
    """Hold a card for an hour, for each of `count` orders of the merchant."""
    now = clock.now()
    for start in range(0, count, CHUNK):
        _make(merchant, min(CHUNK, count - start), now)
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, {"until": now + FAR, "merchant": merchant.pk, "order": ORDER})
        cursor.execute("ANALYZE")


def spread(merchant: Merchant, count: int, *, start: datetime, within: float) -> None:
    """Spread the deadlines of the holds evenly over `within` seconds, starting at `start`."""
    with connection.cursor() as cursor:
        cursor.execute(SPREAD, [start, within, count, merchant.pk, ORDER])


def _make(merchant: Merchant, count: int, now: datetime) -> None:
    ids = [(uuid7(), uuid7()) for _ in range(count)]
    _make_orders(merchant, [checkout_uuid for checkout_uuid, _ in ids], now)
    Payment.objects.bulk_create(
        Payment(
            id=payment_uuid,
            merchant=merchant,
            subject=checkout_uuid,
            checkout_uuid=checkout_uuid,
            amount=AMOUNT,
            currency="GBP",
            status="authorized",
            card_token=payment_uuid.hex,
            card_brand="Visa",
            card_last4="4242",
        )
        for checkout_uuid, payment_uuid in ids
    )
    operations = Operation.objects.bulk_create(
        Operation(
            payment_id=payment_uuid,
            kind="authorize",
            amount=AMOUNT,
            state="succeeded",
            attempts=1,
            actor="bench",
            created_at=now,
            ended_at=now,
        )
        for _, payment_uuid in ids
    )
    _make_charges(merchant, ids, operations)


def _make_orders(merchant: Merchant, ids: list[UUID], now: datetime) -> None:
    Checkout.objects.bulk_create(
        Checkout(
            id=checkout_uuid,
            merchant=merchant,
            merchant_order_id=ORDER,
            amount=AMOUNT,
            currency="GBP",
            return_url="https://shop.example/thanks",
            cancel_url="https://shop.example/basket",
            created_at=now,
            updated_at=now,
            payable_until=now + FAR,
        )
        for checkout_uuid in ids
    )
    lines = [factories.line(unit_price=AMOUNT // 4)]
    Bill.objects.bulk_create(Bill(checkout_id=checkout_uuid, lines=lines) for checkout_uuid in ids)
    Change.objects.bulk_create(
        Change(checkout_id=checkout_uuid, origin=origin, to=to, actor="bench", created_at=now)
        for checkout_uuid in ids
        for origin, to in (("", "created"), ("created", "authorized"))
    )
    Event.objects.bulk_create(
        Event(
            merchant=merchant,
            type=EventType.AUTHORIZED,
            checkout_uuid=checkout_uuid,
            body=b"{}",
            created_at=now,
            valid_until=now + FAR,
        )
        for checkout_uuid in ids
    )


def _make_charges(merchant: Merchant, ids: list[tuple[UUID, UUID]], operations: list[Operation]) -> None:
    charges = Charge.objects.bulk_create(
        Charge(
            payment=payment_uuid,
            account=merchant.pk,
            token=uuid7(),
            subject=checkout_uuid,
            last4="4242",
            amount=AMOUNT,
            currency="GBP",
            state="held",
        )
        for checkout_uuid, payment_uuid in ids
    )
    Call.objects.bulk_create(
        Call(key=operation.pk, kind="authorize", charge=charge, amount=AMOUNT, verdict=Verdict.SUCCEEDED)
        for operation, charge in zip(operations, charges, strict=True)
    )
