"""The operators' one search: from any id, reference or number to the order and its payments.

Each look-up uses an index; a phone number is looked for whole. Rule operator.search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from checkout.models import ApiCall, Checkout, Customer, PaymentRequest, Refund
from config.lib.admin import lists
from payments import money
from payments.models import Discrepancy, Merchant, Operation, Payment
from portal.badges import Badge, of_checkout
from webhooks.models import Delivery, Event

SHOWN = 50
MAX_TERM = 255
LAST4_DIGITS, PHONE_DIGITS = 4, 7


@dataclass(frozen=True)
class FoundOrder:
    """An order, how it was found, and its cards with their payments."""

    checkout: Checkout
    badge: Badge
    amount: str
    by: str
    payments: Sequence[Payment]


@dataclass(frozen=True)
class Found:
    """What a search has found: the newest orders first, and merchants; `is_number`: it was for a phone number."""

    orders: Sequence[FoundOrder]
    merchants: Sequence[Merchant]
    is_number: bool = False


def find(term: str) -> Found:
    """Return what has exactly this id, reference, last 4 or number, and merchants whose name contains it."""
    term = term.replace("\0", "").strip()[:MAX_TERM]
    found: dict[UUID, str] = {}
    for by, uuids in _looked_up(term):
        for uuid in uuids:
            found.setdefault(uuid, by)
    rows = Checkout.objects.filter(pk__in=list(found)[: lists.MAXIMUM]).select_related("merchant")
    newest = list(rows.order_by("-created_at", "-pk")[:SHOWN])
    cards: dict[UUID, list[Payment]] = {}
    for payment in Payment.objects.filter(checkout_uuid__in=[row.pk for row in newest]).order_by(
        "created_at"
    ):
        cards.setdefault(payment.checkout_uuid, []).append(payment)
    merchants = Merchant.objects.filter(name__icontains=term).order_by("name")[:SHOWN] if term else []
    orders = [_order(row, found[row.pk], cards.get(row.pk, [])) for row in newest]
    return Found(orders, list(merchants), is_number=_is_number(term))


def _order(row: Checkout, by: str, payments: Sequence[Payment]) -> FoundOrder:
    return FoundOrder(row, of_checkout(row), money.display(row.amount, row.currency), by, payments)


def _looked_up(term: str) -> Iterator[tuple[str, Sequence[UUID]]]:
    """Yield how orders were found, and their ids."""
    if not term:
        return
    if uuid := _uuid(term):
        yield from _by_uuid(uuid)
    if _is_number(term):
        people = list(Customer.objects.filter(phone=term).values_list("pk", flat=True))
        led = Checkout.objects.filter(led_by__customer__in=people).order_by("-created_at")
        yield "lead’s number", list(led.values_list("pk", flat=True)[: lists.MAXIMUM])
        for shares in (
            PaymentRequest.objects.filter(mate__in=people),
            PaymentRequest.objects.filter(phone=term),
        ):
            yield "mate’s number", list(shares.values_list("checkout", flat=True)[: lists.MAXIMUM])
        return
    if len(term) == LAST4_DIGITS and term.isdecimal():
        keys = lists.find(Payment, ["card_last4"], term, ["card_last4"])
        yield "card", list(Payment.objects.filter(pk__in=keys).values_list("checkout_uuid", flat=True))
    yield "order id", list(lists.find(Checkout, ["merchant_order_id__iexact"], term, ["merchant_order_id"]))
    keys = lists.find(Refund, ["merchant_refund_ref"], term, ["merchant_refund_ref"])
    yield "refund reference", list(Refund.objects.filter(pk__in=keys).values_list("checkout", flat=True))
    calls = ApiCall.objects.filter(pk__in=lists.find(ApiCall, ["request_id"], term, ["request_id"]))
    yield "request id", [uuid for uuid in calls.values_list("checkout_uuid", flat=True) if uuid]
    payments = Payment.objects.filter(provider_reference=term)
    yield "provider’s reference", list(payments.values_list("checkout_uuid", flat=True))


def _by_uuid(uuid: UUID) -> Iterator[tuple[str, Sequence[UUID]]]:
    for by, rows in (
        ("uuid", Checkout.objects.filter(pk=uuid).values_list("pk", flat=True)),
        ("share", PaymentRequest.objects.filter(pk=uuid).values_list("checkout", flat=True)),
        ("payment", Payment.objects.filter(pk=uuid).values_list("checkout_uuid", flat=True)),
        ("operation", Operation.objects.filter(pk=uuid).values_list("payment__checkout_uuid", flat=True)),
        ("refund", Refund.objects.filter(pk=uuid).values_list("checkout", flat=True)),
        ("event", Event.objects.filter(pk=uuid).values_list("checkout_uuid", flat=True)),
        ("delivery", Delivery.objects.filter(pk=uuid).values_list("event__checkout_uuid", flat=True)),
        (
            "discrepancy",
            Discrepancy.objects.filter(pk=uuid).values_list("operation__payment__checkout_uuid", flat=True),
        ),
    ):
        yield by, [row for row in rows if row is not None]


def _uuid(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None


def _is_number(term: str) -> bool:
    return term.startswith("+") and term[1:].isdecimal() and len(term) > PHONE_DIGITS
