"""Checks an order's money after all work is finished, for the random tests."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from uuid import UUID

from django.db import transaction

from checkout import refunds
from checkout.models import Checkout
from checkout.remedies import sending, settling_outside
from checkout.remedies.status_check import NotAllowed
from checkout.settling import cards
from checkout.states import OperationInProgress, StateConflict, Status
from payments.models import Booking, Discrepancy, Dispute, Movement, Operation, Payment
from tests.factories import CAUSE

ENDED = (Status.VOIDED, Status.EXPIRED)
REFUSED = (Operation.State.FAILED, Operation.State.DECLINED)


def card_differences(provider_books: Mapping[UUID, int]) -> list[str]:
    """Return a line for each card whose movements differ from the provider's books."""
    ours = dict.fromkeys(provider_books, 0)
    for payment, amount in Movement.objects.values_list("payment", "amount"):
        ours[payment] = ours.get(payment, 0) + amount
    return [
        f"{payment}: {amount} here, {provider_books.get(payment, 0)} there"
        for payment, amount in ours.items()
        if amount != provider_books.get(payment, 0)
    ]


def ways_out(checkout: Checkout) -> list[str]:
    """Return the names of the actions that are allowed on a checkout, or ["terminal"] if it has ended.

    A captured or refunded order counts as ended once no amount is still charged to any card.
    """
    accounts = cards.read_accounts(checkout)
    bears = any(card.borne > 0 for card in accounts.cards.values())
    if checkout.status in ENDED or (checkout.status in (Status.CAPTURED, Status.REFUNDED) and not bears):
        return ["terminal"]
    return [name for name, verb in _verbs(checkout) if _is_allowed(verb)]


def _verbs(checkout: Checkout) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "refund", lambda: refunds.accept(checkout.merchant, checkout.pk, ref="way out", cause=CAUSE)
    for row in refused_refunds(checkout.pk):
        yield f"send {row.pk} again", partial(sending.send_again, row.pk, cause=CAUSE)
        settle = partial(settling_outside.settle_outside, row.pk, note="Cash", cause=CAUSE)
        yield f"settle {row.pk} outside", settle


def refused_refunds(checkout_uuid: UUID) -> list[Operation]:
    """Return the refunds that failed or were returned. An operator can settle such a refund in another way."""
    rows = Operation.objects.filter(payment__checkout_uuid=checkout_uuid, kind="refund")
    back = set(
        Movement.objects.filter(checkout_uuid=checkout_uuid, kind="refund_returned").values_list(
            "operation", flat=True
        )
    )
    return [row for row in rows.order_by("pk") if row.state in REFUSED or row.pk in back]


def _is_allowed(verb: Callable[[], object]) -> bool:
    savepoint = transaction.savepoint()
    try:
        verb()
    except (NotAllowed, StateConflict, OperationInProgress):
        return False
    finally:
        transaction.savepoint_rollback(savepoint)
    return True


def unexplained(checkout: Checkout) -> list[str]:
    """Return a line for each card that is charged a wrong amount, unless a discrepancy is open for it.

    A dispute can leave too little charged to a card. This needs no discrepancy, because the merchant bears the
    loss.
    """
    accounts = cards.read_accounts(checkout)
    subjects = set(Discrepancy.objects.filter(closed_at=None).values_list("subject", flat=True))
    known = {checkout.pk, *(share.pk for share in accounts.shares)}
    found = []
    for card in accounts.cards.values():
        operations = card.payment.operations.values_list("pk", flat=True)
        difference = card.borne - card.unconfirmed - accounts.target(card)
        is_loss = -max(0, card.disputed) <= difference <= 0
        if not is_loss and not subjects & {card.payment.pk, *operations, *known}:
            found.append(f"{card.payment.card_last4}: {card.borne} borne, {accounts.target(card)} wanted")
    return found


def cards_with_too_much() -> list[Payment]:
    """Return the payments that were reported because too much was refunded to their card.

    Some of these reports are correct: staff refunded a card in the dashboard, and an operator also settled a refund
    of that card outside the service. The payments of such cards are left out.
    """
    reported = Discrepancy.objects.filter(kind="card_got_too_much").values("subject")
    by_staff = Operation.objects.filter(kind="refund", purpose=Operation.Purpose.OUTSIDE).values("payment")
    settled = Booking.objects.filter(kind="settled_outside", payment__in=by_staff).values("payment")
    return list(Payment.objects.filter(pk__in=reported).exclude(pk__in=settled))


def is_disputed() -> bool:
    return Dispute.objects.filter(status=Dispute.Status.OPEN).exists()


def payments() -> list[UUID]:
    return list(Payment.objects.order_by("pk").values_list("pk", flat=True))
