import pytest

from checkout import captures
from checkout.models import Checkout
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer


@pytest.fixture
def lea(unpaid: Checkout) -> Payer:
    return Payer(unpaid)


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """She has asked Finn for £20.00, Amy for £30.00, and paid; the shop has captured."""
    payer = Payer(unpaid)
    payer.pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea")
    return payer


@pytest.fixture
def order(lead: Payer) -> Checkout:
    return captures.capture(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)


@pytest.fixture
def finn(order: Checkout) -> Mate:
    return Mate(order.payment_requests.get(position=2))
