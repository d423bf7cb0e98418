"""What goes back to the lead's card, and what happens when it cannot."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkout import captures
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments.models import Discrepancy, Operation
from payments.providers.sandbox.models import Charge
from tests import mates
from tests.factories import CAUSE
from tests.mates import ACCOUNT_CLOSED

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("proven")]


class TestTheLeadsShare:
    @pytest.mark.rule("reimburse.retry")
    @pytest.mark.rule("money.settled")
    def test_that_cannot_be_given_back_is_tried_again_daily_and_shown_after_three_days(
        self, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        (share,) = mates.split(unpaid, 2000)
        pay(unpaid, ACCOUNT_CLOSED)
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        mates.pay(share)
        mates.pump(unpaid.pk, rounds=3)
        assert PaymentRequest.objects.get(pk=share.pk).status == "paid"
        failed, again = Operation.objects.filter(share_uuid=share.pk).order_by("created_at")
        assert failed.ended_at and again.next_attempt_at and again.state == "planned"
        assert again.next_attempt_at == again.created_at == failed.ended_at + timedelta(days=1)
        assert not Discrepancy.objects.exists()
        ago = clock.now() - timedelta(days=3)
        PaymentRequest.objects.filter(pk=share.pk).update(paid_at=ago)
        mates.pump(unpaid.pk, rounds=2)
        told = Discrepancy.objects.get()
        assert (told.kind, told.closed_at) == ("share_not_reimbursed", None)
        Charge.objects.filter(last4="5126").update(last4="4242")
        mates.pump(unpaid.pk, rounds=2)
        told.refresh_from_db()
        assert told.closed_at is not None and told.note == "The lead has got it."
