"""If a person taps the button for the receipt link many times at once, only one text message is requested."""

from collections.abc import Callable

import pytest

from checkout import captures
from checkout.models import Checkout
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.status import receipt_sms
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE, CustomerFactory
from tests.races.test_claims import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.rule("receipt.sms")
def test_ten_taps_send_one_receipt(acme: Merchant, pay: Callable[..., Checkout]) -> None:
    checkout = captures.capture(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
    Checkout.objects.filter(pk=checkout.pk).update(lead=CustomerFactory.create())
    target = PaymentTarget(Checkout.objects.get(pk=checkout.pk))
    assert set(at_once([lambda: receipt_sms.request_receipt(target, "192.0.2.1")] * 10)) == {"done"}
    assert SmsMessage.objects.filter(kind="receipt", subject=checkout.pk).count() == 1
