"""If a refund failed as a whole, no card is owed a part of it, so an operator cannot send the part."""

from collections.abc import Callable

import pytest

from checkout import captures, refunds
from checkout.models import Checkout, Refund
from checkout.remedies import outstanding_refund
from payments.models import Operation
from tests import mates
from tests.checkout.remedies.remedy import ACCOUNT_CLOSED, close, refuses, send
from tests.factories import CAUSE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient", "proven")]


@pytest.mark.rule("refund.failed")
def test_no_card_is_owed_a_part_of_a_refund_that_failed_as_a_whole(
    unpaid: Checkout, pay: Callable[..., Checkout]
) -> None:
    pay(unpaid, ACCOUNT_CLOSED)
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    mates.pump(unpaid.pk, rounds=2)
    assert Refund.objects.get().status == "failed"
    part = Operation.objects.select_related("payment").get(kind="refund")
    for remedy in (send, close):
        refuses(remedy, part, "The whole refund failed, so the merchant has the money")
    assert outstanding_refund.has_failed_as_a_whole(part)
    (read,) = outstanding_refund.with_refund_facts(Operation.objects.filter(kind="refund"))
    assert outstanding_refund.has_failed_as_a_whole(read)


def test_a_card_is_owed_the_failed_part_of_a_refund_that_reached_another_card(stuck: Operation) -> None:
    assert not outstanding_refund.has_failed_as_a_whole(stuck)
    send(stuck)
