import pytest

from payments.models import Merchant
from portal.models import User
from tests.portal import people


@pytest.fixture
def lea(acme: Merchant) -> User:
    return people.join(acme)
