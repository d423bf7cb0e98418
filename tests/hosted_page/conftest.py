import pytest

from checkout import captures
from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SmsMessage
from hosted_page.sms import senders
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer
from tests.hosted_page.sms.test_outbox import Network


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    return Payer(unpaid)


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who splits the order with Finn (£20.00) and Amy (£30.00).

    The order's amount is held on her card.
    """
    payer = Payer(unpaid)
    payer.pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea")
    return payer


@pytest.fixture
def order(lead: Payer) -> Checkout:
    return captures.capture(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)


@pytest.fixture
def finn(order: Checkout) -> Mate:
    return Mate(order.payment_requests.get(position=2))


@pytest.fixture
def amy(order: Checkout) -> PaymentRequest:
    return order.payment_requests.get(position=3)


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch) -> Network:
    """Replace the SMS network with a test double, and return the double."""
    made = Network()
    monkeypatch.setattr(senders, "current_sender", lambda: made)
    return made


@pytest.fixture
def network(carrier: Network, order: Checkout) -> Network:
    """Delete the texts that the sign-ins have queued, and return the test double of the SMS network."""
    SmsMessage.objects.all().delete()
    return carrier
