import pytest

from payments.models import Merchant
from portal.models import Membership, Role
from tests.portal import stage


@pytest.fixture
def owner(acme: Merchant) -> Membership:
    return stage.person(acme, Role.OWNER)
