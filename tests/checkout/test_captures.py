import pytest
from django.db import transaction

from checkout import captures
from checkout.models import Checkout
from payments.models import Merchant, Operation
from tests import factories
from tests.factories import CAUSE, make_late


class TestCapture:
    @pytest.mark.rule("capture.repeat", "capture.takes")
    def test_takes_the_money_once(self, held: Checkout) -> None:
        first = captures.capture(held.merchant, held.pk, cause=CAUSE)
        again = captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert first.status == "captured" and first.captured_at == again.captured_at
        assert factories.balances(held.pk) == {"provider": 9000, "merchant": -9000}
        assert Operation.objects.filter(kind="capture").count() == 1

    @pytest.mark.rule("capture.deadline")
    def test_refuses_a_lapsed_hold(self, held: Checkout) -> None:
        make_late(held)
        with pytest.raises(captures.NotCapturable):
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        held.refresh_from_db()
        assert (held.status, held.void_reason, held.voided_at) == (
            "voided",
            "auth_expired",
            held.capture_before,
        )
        assert not Operation.objects.filter(kind="capture").exists()

    def test_finds_no_checkout_of_another_merchant(self, held: Checkout, rival: Merchant) -> None:
        with pytest.raises(Checkout.DoesNotExist):
            captures.capture(rival, held.pk, cause=CAUSE)
        held.refresh_from_db()
        assert held.status == "authorized"

    def test_refuses_to_run_in_an_open_transaction(self, held: Checkout) -> None:
        """The intent must be committed before the provider is called."""
        with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
            captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert not Operation.objects.filter(kind="capture").exists()
