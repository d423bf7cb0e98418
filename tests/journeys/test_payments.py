import time

import pytest

from tests.journeys import polling
from tests.journeys.merchant import Merchant, refusal, seconds_until, unix
from tests.journeys.receiver import Receiver

pytestmark = pytest.mark.journey

REFUND_FAILS = "4000000000005126"
DECLINED = "4000000000009995"


class TestPayAndCapture:
    def test_the_merchant_is_notified_of_the_hold_and_captures_it_once(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        checkout_uuid = subscribed.create()
        assert subscribed.read(checkout_uuid)["status"] == "created"
        paid = subscribed.pay(checkout_uuid)
        (told,) = receiver.awaited("checkout.authorized", checkout_uuid)
        assert told.arrived_at - unix(paid["authorized_at"]) < 3
        assert unix(paid["capture_before"]) - unix(paid["authorized_at"]) == pytest.approx(120)
        assert told.envelope["created_at"] == paid["authorized_at"]
        assert (
            told.envelope["data"].items()
            >= {
                "checkout_uuid": checkout_uuid,
                "merchant_order_id": paid["merchant_order_id"],
                "status": "authorized",
                "amount": 9000,
                "currency": "GBP",
            }.items()
        )
        captured = subscribed.capture(checkout_uuid)
        assert (captured["status"], captured["amount"]) == ("captured", 9000)
        assert subscribed.capture(checkout_uuid) == captured
        assert subscribed.read(checkout_uuid) == captured

    def test_a_merchant_can_capture_while_it_answers_the_webhook(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        captured = []

        def capture(arrival: object) -> int:
            captured.append(subscribed.capture(checkout_uuid)["status"])
            return 204

        receiver.answer = capture
        checkout_uuid = subscribed.create()
        subscribed.pay(checkout_uuid)
        (told,) = receiver.awaited("checkout.authorized", checkout_uuid)
        polling.until(lambda: captured, within=5, what="the answer to the capture")
        assert captured == [subscribed.read(checkout_uuid)["status"]] == ["captured"]
        (entry,) = subscribed.log_of(told.event_id, length=1)
        assert (entry["http_status"], entry["status"]) == (204, "delivered")

    def test_a_declined_card_moves_nothing_and_another_one_pays(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        checkout_uuid = subscribed.create()
        declined = subscribed.call("POST", f"sandbox/v1/checkouts/{checkout_uuid}/pay", {"card": DECLINED})
        assert refusal(declined) == (402, "card_declined")
        assert subscribed.read(checkout_uuid)["status"] == "created"
        assert subscribed.pay(checkout_uuid)["status"] == "authorized"
        receiver.awaited("checkout.authorized", checkout_uuid)


class TestHold:
    def test_lapses_automatically_without_a_capture(self, subscribed: Merchant, receiver: Receiver) -> None:
        checkout_uuid = subscribed.held()
        deadline = subscribed.advance(checkout_uuid, 118)["capture_before"]
        assert unix(deadline) > time.time(), "the machine is too slow to tell who let the hold lapse"
        (told,) = receiver.awaited("checkout.voided", checkout_uuid, within=seconds_until(deadline) + 3)
        assert 0 <= told.arrived_at - unix(deadline) < 3
        assert told.envelope["created_at"] == deadline
        assert told.envelope["data"]["reason"] == "auth_expired"
        late = subscribed.post(f"checkouts/{checkout_uuid}/capture", {})
        assert refusal(late) == (409, "not_capturable")
        ended = subscribed.read(checkout_uuid)
        assert (ended["status"], ended["void_reason"]) == ("voided", "auth_expired")
        assert ended["voided_at"] == deadline

    def test_is_released_when_the_merchant_cancels(self, subscribed: Merchant, receiver: Receiver) -> None:
        checkout_uuid = subscribed.held()
        cancelled = subscribed.cancel(checkout_uuid)
        assert (cancelled["status"], cancelled["void_reason"]) == ("voided", "merchant_cancel")
        (told,) = receiver.awaited("checkout.voided", checkout_uuid)
        assert told.envelope["data"]["reason"] == "merchant_cancel"
        assert subscribed.cancel(checkout_uuid)["voided_at"] == cancelled["voided_at"]
        late = subscribed.post(f"checkouts/{checkout_uuid}/capture", {})
        assert refusal(late) == (409, "not_capturable")
        refund = subscribed.post(f"checkouts/{checkout_uuid}/refund", {"merchant_refund_ref": checkout_uuid})
        assert refusal(refund) == (409, "not_refundable")


class TestRefund:
    def test_settles_and_returns_everything(self, merchant: Merchant) -> None:
        checkout_uuid = merchant.captured()
        ref = merchant.refund(checkout_uuid)
        pending = merchant.read(checkout_uuid)
        assert (pending["status"], pending["refunded_amount"], pending["last_refund_at"]) == (
            "refunding",
            0,
            None,
        )
        refunded = merchant.awaited(checkout_uuid, "refunded", within=8)
        assert (refunded["refunded_amount"], refunded["merchant_processor_fee"]) == (9000, 0)
        assert refunded["last_refund_at"] == refunded["refunds"][0]["settled_at"]
        again = merchant.post(f"checkouts/{checkout_uuid}/refund", {"merchant_refund_ref": ref})
        assert (again.status_code, again.json()["data"]) == (200, refunded["refunds"][0])
        other = merchant.post(f"checkouts/{checkout_uuid}/refund", {"merchant_refund_ref": f"{ref}-2"})
        assert refusal(other) == (409, "not_refundable")

    def test_that_fails_at_the_bank_moves_no_money_and_can_be_repeated(self, merchant: Merchant) -> None:
        checkout_uuid = merchant.captured(REFUND_FAILS)
        first = merchant.refund(checkout_uuid)
        back = merchant.advanced(checkout_uuid, "captured")
        assert (back["refunded_amount"], back["last_refund_at"]) == (0, None)
        assert [(refund["merchant_refund_ref"], refund["status"]) for refund in back["refunds"]] == [
            (first, "failed")
        ]
        repeated = merchant.post(f"checkouts/{checkout_uuid}/refund", {"merchant_refund_ref": first})
        assert (repeated.status_code, repeated.json()["data"]["status"]) == (200, "failed")
        merchant.refund(checkout_uuid)
        assert merchant.read(checkout_uuid)["status"] == "refunding"
        assert len(merchant.advanced(checkout_uuid, "captured")["refunds"]) == 2
