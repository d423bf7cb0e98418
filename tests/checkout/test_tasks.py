"""The pumps of checkouts."""

from collections.abc import Callable

import pytest

from checkout import tasks
from checkout.models import Checkout
from payments.models import Merchant
from tests import factories
from tests.factories import make_late
from tests.outages import leave_in_doubt

pytestmark = pytest.mark.django_db


class TestThePump:
    def test_lets_lapse_and_expire_what_stands_behind_captures_in_doubt(
        self, acme: Merchant, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tasks, "BATCH", 2)
        for _ in range(2):
            in_doubt = pay(factories.checkout(acme))
            leave_in_doubt(in_doubt)
            make_late(in_doubt)
        late, unpaid = pay(factories.checkout(acme)), factories.checkout(acme)
        make_late(late)
        make_late(unpaid)
        tasks.expire_due()
        late.refresh_from_db()
        unpaid.refresh_from_db()
        assert (late.status, unpaid.status) == ("voided", "expired")
