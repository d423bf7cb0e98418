"""The bank accepts some calls at once and completes them later. Some refunds are returned afterwards."""

from datetime import timedelta

import pytest
from uuid_utils.compat import uuid7

from config.lib import clock
from payments import provider
from payments.provider import Verdict
from payments.providers.sandbox import client, settling
from payments.providers.sandbox.models import BankNotification, Call
from tests.payments.providers.sandbox.teller import Teller

pytestmark = pytest.mark.usefixtures("both_ways")


class TestTheCardsThatEndLater:
    def test_0077_confirms_its_capture_three_seconds_later(self) -> None:
        teller, key = Teller("4000000000000077"), uuid7()
        teller.ask("authorize")
        assert teller.ask("capture", key).verdict == Verdict.PENDING
        assert teller.look_up("capture", key).verdict == Verdict.PENDING
        assert Call.objects.filter(settles_at__gt=clock.now() + timedelta(seconds=2)).count() == 1
        teller.later(3)
        assert teller.look_up("capture", key).verdict == Verdict.SUCCEEDED
        assert (teller.charge().state, BankNotification.objects.get().verdict) == ("captured", "succeeded")

    def test_7726_returns_a_settled_refund(self) -> None:
        teller, key = Teller("4000000000007726"), uuid7()
        teller.carry_out_preceding("refund")
        teller.ask("refund", key)
        assert teller.look_up("refund", key).verdict == Verdict.SUCCEEDED
        assert teller.charge().refunded_amount == 9000
        settled = clock.now()
        assert not list(provider.current_provider().changed(settled))
        teller.later(2)
        settling.settle_due()
        assert list(provider.current_provider().changed(settled)) == [teller.payment.pk]
        (back,) = provider.current_provider().movements(teller.payment).refunds
        assert (back.operation, back.verdict, back.has_returned) == (key, Verdict.FAILED, True)
        found = teller.look_up("refund", key)
        assert (found.verdict, found.reason) == (Verdict.FAILED, "card_account_closed")
        assert teller.charge().refunded_amount == 0
        told = BankNotification.objects.order_by("id").values_list("verdict", flat=True)
        assert list(told) == ["succeeded", "failed"]
        assert teller.ask("refund").verdict == Verdict.PENDING, "it can be sent again"

    def test_7726_settles_a_refund_before_it_returns_it(self) -> None:
        teller, key = Teller("4000000000007726"), uuid7()
        teller.carry_out_preceding("refund")
        teller.ask("refund", key)
        teller.later(60)
        for _ in range(2):
            settling.settle_due()
            assert teller.look_up("refund", key).verdict == Verdict.SUCCEEDED
        teller.later(2)
        assert teller.look_up("refund", key).verdict == Verdict.FAILED


def test_changes_not_yet_notified_are_returned_on_request() -> None:
    teller, key = Teller("4000000000000077"), uuid7()
    teller.ask("authorize")
    teller.ask("capture", key)
    teller.later(3)
    client.call_bank("dispute", payment=teller.payment.pk)
    settled, disputed = client.call_bank("tell", payments=[teller.payment.pk])
    assert {settled.payment, disputed.payment} == {teller.payment.pk}
    assert (settled.kind, settled.operation, settled.verdict) == ("capture", key, Verdict.SUCCEEDED)
    assert (disputed.kind, disputed.operation, disputed.verdict) == ("", None, Verdict.UNKNOWN)
