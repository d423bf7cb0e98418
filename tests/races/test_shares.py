"""Mates, the lead, the merchant and the pumps act on a share at once.

Afterwards, the correct amount must be charged to every card.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations_with_replacement
from threading import Barrier

import pytest
from django.db import connection

from checkout import captures, mate_shares, operation_recovery, refunds
from checkout.group import share_changes
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.proof import ledger_proof
from config import errors
from config.lib import crypto
from payments.models import Discrepancy, Merchant, Payment
from payments.provider import CardUse
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests import factories, mates
from tests.factories import CAUSE, CustomerFactory

pytestmark = pytest.mark.django_db(transaction=True)
AMOUNT, SHARE = 9000, 2000
REFUSALS = {"share_not_open", "operation_in_progress", "not_refundable"}


@pytest.fixture(autouse=True)
def _proven() -> Iterator[None]:
    yield
    assert ledger_proof.find_breaches() == []
    assert not Discrepancy.objects.exists()


@pytest.fixture
def share(acme: Merchant, pay: Callable[..., Checkout]) -> Callable[[], PaymentRequest]:
    """Return a function that creates an open share."""

    def create() -> PaymentRequest:
        checkout = factories.checkout(acme)
        (request,) = mates.split(checkout, SHARE)
        captures.capture(acme, pay(checkout).pk, cause=CAUSE)
        return PaymentRequest.objects.select_related("checkout__merchant").get(pk=request.pk)

    return create


def by_card(number: str) -> Callable[[PaymentRequest], None]:
    def pay(share: PaymentRequest) -> None:
        mate: Customer = CustomerFactory.create()
        token = bank.tokenise(subject=share.pk, number=number)
        mate_shares.pay(share.pk, card=CardUse(token), mate=mate, cause=CAUSE)
        operation_recovery.finish_due_operations(share.checkout_id)

    return pay


RIVALS: dict[str, Callable[[PaymentRequest], object]] = {
    "finn pays": by_card(mates.FINNS),
    "amy pays": by_card(mates.AMYS),
    "finn says no": lambda share: mate_shares.decline(share.pk),
    "lea keeps it": lambda share: mate_shares.cancel(share.pk),
    "lea asks again": lambda share: share_changes.ask_again(share.pk),
    "lea renames it": lambda share: share_changes.rename(share.pk, "Fionn"),
    "finn changes his mind": lambda share: share_changes.reconsider(share.pk),
    "merchant refunds": lambda share: refunds.accept(
        share.checkout.merchant, share.checkout_id, ref=f"r-{share.pk}", cause=CAUSE
    ),
    "pump runs": lambda share: mates.pump(share.checkout_id),
}


def attempt(name: str, share: PaymentRequest, barrier: Barrier) -> str:
    """Run a rival. Return "done", the error code, or the `repr` of an unexpected error."""
    try:
        connection.ensure_connection()
        barrier.wait(5)
        RIVALS[name](share)
    except Exception as error:
        return errors.code_of(error) or repr(error)
    else:
        return "done"
    finally:
        connection.close()


@pytest.mark.parametrize(
    "state",
    ["paying", *(pytest.param(state, marks=pytest.mark.long) for state in ("open", "paid", "declined"))],
)
def test_each_pair_of_actions_leaves_the_right_amount_on_every_card(
    share: Callable[[], PaymentRequest], state: str
) -> None:
    for pair in combinations_with_replacement(RIVALS, 2):
        request = share()
        if state == "declined":
            mate_shares.decline(request.pk)
        elif state != "open":
            mates.pay(request, "378282246310005" if state == "paying" else mates.FINNS)
        if state == "paid":
            mates.pump(request.checkout_id)
        barrier = Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(attempt, pair, [request] * 2, [barrier] * 2))
        assert set(answers) <= {"done", *REFUSALS}, (pair, answers)
        mates.settled(request)
        check(request, pair, answers)


def check(request: PaymentRequest, pair: tuple[str, ...], answers: list[str]) -> None:
    """Check that the whole amount of the order is charged or, if the order is refunded, no amount.

    A share must be charged to the mate's card if the share is paid, and only then.
    """
    checkout = Checkout.objects.get(pk=request.checkout_id)
    payments = dict(Payment.objects.filter(checkout_uuid=checkout.pk).values_list("pk", "subject"))
    charges = Charge.objects.filter(payment__in=list(payments))
    assert not charges.filter(state="held").exists(), (pair, answers)
    of_share = [
        row.amount - row.refunded_amount
        for row in charges
        if payments[row.payment] == request.pk and row.state == "captured"
    ]
    borne = sum(row.amount - row.refunded_amount for row in charges if row.state == "captured")
    if checkout.status == "refunded":
        assert (borne, request.status in ("refunded", "cancelled", "declined")) == (0, True), (pair, answers)
    else:
        assert (checkout.status, borne) == ("captured", AMOUNT), (pair, answers)
        is_paid = request.status == "reimbursed"
        assert of_share == ([SHARE] if is_paid else []), (pair, answers, request.status)
    assert request.token_digest == crypto.digest(request.token), pair
