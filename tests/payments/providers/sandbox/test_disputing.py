"""The bank lists a dispute when it is opened, and again when it is decided."""

import pytest

from config.lib import clock
from payments import provider
from payments.providers.sandbox import client
from tests.payments.providers.sandbox.teller import Teller

pytestmark = pytest.mark.usefixtures("both_ways")


class TestADispute:
    def test_is_listed_when_it_is_opened_and_again_when_it_is_decided(self) -> None:
        teller = Teller()
        teller.carry_out_preceding("refund")
        for happens in ({"verb": "dispute"}, {"verb": "decide", "is_won": True}):
            before, verb = clock.now(), str(happens.pop("verb"))
            assert not list(provider.current_provider().changed(before))
            client.call_bank(verb, payment=teller.payment.pk, **happens)
            assert list(provider.current_provider().changed(before)) == [teller.payment.pk]
