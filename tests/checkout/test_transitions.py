from collections.abc import Callable

import pytest

from checkout import tasks, transitions
from checkout.models import Checkout
from payments.models import Merchant, Operation, Payment
from tests import factories
from tests.factories import CAUSE, make_late
from webhooks.models import Event


class TestAuthorize:
    @pytest.mark.rule("pay.held")
    def test_holds_the_amount_for_two_minutes_and_tells_the_merchant(self, held: Checkout) -> None:
        assert held.status == "authorized"
        assert held.authorized_at is not None and held.capture_before is not None
        assert (held.capture_before - held.authorized_at).total_seconds() == 120
        event = Event.objects.get()
        assert (event.type, event.valid_until) == ("checkout.authorized", held.capture_before)
        assert factories.balances(held.pk) == {}

    @pytest.mark.rule("pay.declined")
    def test_a_declined_card_leaves_it_unpaid(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        declined = pay(unpaid, "4000000000009995")
        assert declined.status == "created"
        assert Payment.objects.get().decline_reason == "insufficient_funds"
        assert not Event.objects.exists()

    @pytest.mark.rule("pay.declined")
    def test_another_card_may_be_tried(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> None:
        pay(unpaid, "4000000000000002")
        assert pay(unpaid).status == "authorized"


class TestCapture:
    @pytest.mark.rule("capture.repeat", "capture.takes")
    def test_takes_the_money_once(self, held: Checkout) -> None:
        first = transitions.capture(held.merchant, held.pk, cause=CAUSE)
        again = transitions.capture(held.merchant, held.pk, cause=CAUSE)
        assert first.status == "captured" and first.captured_at == again.captured_at
        assert factories.balances(held.pk) == {"provider": 9000, "merchant": -9000}
        assert Operation.objects.filter(kind="capture").count() == 1

    @pytest.mark.rule("capture.deadline")
    def test_refuses_a_lapsed_hold(self, held: Checkout) -> None:
        make_late(held)
        with pytest.raises(transitions.NotCapturable):
            transitions.capture(held.merchant, held.pk, cause=CAUSE)
        held.refresh_from_db()
        assert (held.status, held.void_reason, held.voided_at) == (
            "voided",
            "auth_expired",
            held.capture_before,
        )
        assert not Operation.objects.filter(kind="capture").exists()

    def test_a_stranger_finds_nothing(self, held: Checkout, rival: Merchant) -> None:
        with pytest.raises(Checkout.DoesNotExist):
            transitions.capture(rival, held.pk, cause=CAUSE)
        held.refresh_from_db()
        assert held.status == "authorized"


class TestCancel:
    @pytest.mark.rule("cancel.held")
    def test_releases_the_hold_and_tells_the_merchant_once(self, held: Checkout) -> None:
        transitions.cancel(held.merchant, held.pk, cause=CAUSE)
        transitions.cancel(held.merchant, held.pk, cause=CAUSE)
        tasks.finish_operations()
        assert Payment.objects.get().status == "voided"
        assert Event.objects.filter(type="checkout.voided").count() == 1

    @pytest.mark.rule("cancel.unpaid")
    def test_ends_an_unpaid_one_without_an_event(self, unpaid: Checkout) -> None:
        ended = transitions.cancel(unpaid.merchant, unpaid.pk, cause=CAUSE)
        assert (ended.status, ended.void_reason) == ("voided", "merchant_cancel")
        assert not Event.objects.exists()

    def test_refuses_a_captured_one(self, captured: Checkout) -> None:
        with pytest.raises(transitions.NotCancellable):
            transitions.cancel(captured.merchant, captured.pk, cause=CAUSE)


class TestLapse:
    @pytest.mark.rule("lapse.void")
    def test_the_pump_voids_what_nobody_captured(self, held: Checkout) -> None:
        make_late(held)
        tasks.expire_due()
        tasks.finish_operations()
        held.refresh_from_db()
        assert (held.status, held.void_reason) == ("voided", "auth_expired")
        assert Payment.objects.get().status == "voided"
        assert Event.objects.get(type="checkout.voided").created_at == held.capture_before

    @pytest.mark.rule("expiry.end")
    def test_an_unpaid_one_expires(self, unpaid: Checkout) -> None:
        make_late(unpaid)
        tasks.expire_due()
        unpaid.refresh_from_db()
        assert (unpaid.status, unpaid.expired_at) == ("expired", unpaid.payable_until)
