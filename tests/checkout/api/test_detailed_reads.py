"""The merchant API shows exactly the right fields of a checkout for each status, in compact JSON."""

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from checkout import captures, refunds, states, tasks
from checkout.models import Checkout, Refund
from payments import operations
from payments.models import Operation, Payment
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE, make_late, order
from tests.outages import break_down, leave_in_doubt
from webhooks.models import Event

pytestmark = pytest.mark.django_db
Bring = Callable[[str], Checkout]
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ALWAYS = {
    "checkout_uuid", "merchant_order_id", "status", "amount", "currency", "checkout_url", "expires_at",
    "created_at", "updated_at", "metadata", "items", "available_actions",
}  # fmt: skip
HELD = {"authorized_at", "capture_before"}
VOIDED = {"voided_at", "void_reason"}
PAID = {"captured_at", "refunded_amount", "last_refund_at", "merchant_processor_fee", "merchant_service_fee"}
SHOWN = {
    "created": ALWAYS | {"payable_until"},
    "expired": ALWAYS | {"payable_until", "expired_at"},
    "authorized": ALWAYS | HELD,
    "voided": ALWAYS | HELD | VOIDED | {"pending_operation"},  # the pending void
    "lapsed": ALWAYS | HELD | VOIDED | {"pending_operation"},
    "captured": ALWAYS | HELD | PAID,
    "refunding": ALWAYS | HELD | PAID | {"refunds", "pending_operation"},
    "refunded": ALWAYS | HELD | PAID | {"refunds"},
}
REFUND = {
    "refund_uuid", "merchant_refund_ref", "reason", "status", "amount", "created_at", "settled_at",
    "failure_reason",
}  # fmt: skip


@pytest.mark.rule("read.actions")
class TestAvailableActions:
    def test_are_empty_while_a_capture_is_in_doubt_and_past_the_deadline(
        self, api: Api, held: Checkout
    ) -> None:
        break_down("look_up", "down", times=9)
        leave_in_doubt(held)
        assert read(api, held)["available_actions"] == []
        make_late(held)
        (listed,) = api.get("checkouts").json()["data"]["checkouts"]
        assert read(api, held)["available_actions"] == listed["available_actions"] == []

    def test_are_empty_while_the_payers_bank_asks_for_confirmation(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        asked = pay(unpaid, "4000002500003155")
        shown = read(api, asked)
        assert (shown["status"], shown["pending_operation"]) == ("created", "authorize")
        assert shown["available_actions"] == []

    @pytest.mark.rule("operator.stop")
    @pytest.mark.parametrize(
        ("status", "actions"),
        [("created", ["cancel"]), ("authorized", ["cancel"]), ("captured", ["refund"])],
    )
    @pytest.mark.parametrize("is_all", [False, True], ids=["the merchant", "all"])
    def test_exclude_capture_after_an_operator_stop(
        self, api: Api, at: Bring, status: str, actions: list[str], is_all: bool
    ) -> None:
        checkout = at(status)
        factories.stop(None if is_all else api.merchant)
        assert read(api, checkout)["available_actions"] == actions
        factories.stop(None if is_all else api.merchant, is_stopped=False)
        assert read(api, checkout)["available_actions"] == states.allowed_actions(status)


def read(api: Api, checkout: Checkout) -> dict[str, Any]:
    shown: dict[str, Any] = api.get(f"checkouts/{checkout.pk}").json()["data"]
    return shown


class TestFields:
    @pytest.mark.rule("api.timestamps", "read.fields")
    @pytest.mark.parametrize("status", SHOWN)
    def test_of_each_status_are_exactly_these(self, api: Api, at: Bring, status: str) -> None:
        checkout = at(status)
        shown = read(api, checkout)
        assert set(shown) == SHOWN[status]
        [listed] = api.get("checkouts").json()["data"]["checkouts"]
        assert listed == shown
        for name, value in shown.items():
            assert not name.endswith("_at") or value is None or TIMESTAMP.fullmatch(value)
            assert not name.endswith(("amount", "fee")) or type(value) is int

    @pytest.mark.rule("read.actions")
    @pytest.mark.parametrize(
        ("status", "facts"),
        [
            ("created", {"status": "created", "expires_at": None, "available_actions": ["cancel"]}),
            ("authorized", {"status": "authorized", "available_actions": ["capture", "cancel"]}),
            ("voided", {"status": "voided", "void_reason": "merchant_cancel", "available_actions": []}),
            ("lapsed", {"status": "voided", "void_reason": "auth_expired", "available_actions": []}),
            ("captured", {"refunded_amount": 0, "last_refund_at": None, "available_actions": ["refund"]}),
            ("captured", {"amount": 9000, "merchant_processor_fee": 0, "merchant_service_fee": 0}),
            ("refunding", {"status": "refunding", "refunded_amount": 0, "last_refund_at": None}),
            ("refunded", {"status": "refunded", "refunded_amount": 9000, "available_actions": []}),
        ],
    )
    def test_have_the_values_of_the_checkout(
        self, api: Api, at: Bring, status: str, facts: dict[str, Any]
    ) -> None:
        shown = read(api, at(status))
        assert {name: shown[name] for name in facts} == facts

    def test_of_a_checkout_voided_before_payment_mention_no_hold(self, api: Api, unpaid: Checkout) -> None:
        shown = api.post(f"checkouts/{unpaid.pk}/cancel").json()["data"]
        assert set(shown) == ALWAYS | VOIDED
        assert not Event.objects.exists()

    @pytest.mark.rule("expiry.end", "lapse.whoever")
    @pytest.mark.parametrize(("status", "ended_at"), [("created", "expired_at"), ("authorized", "voided_at")])
    def test_of_an_overdue_checkout_say_that_it_ended_at_its_deadline(
        self, api: Api, at: Bring, status: str, ended_at: str
    ) -> None:
        checkout = at(status)
        factories.make_late(checkout)
        [listed] = api.get("checkouts").json()["data"]["checkouts"]
        checkout.refresh_from_db()
        deadline = checkout.capture_before or checkout.payable_until
        assert datetime.fromisoformat(listed[ended_at]) == deadline.replace(
            microsecond=deadline.microsecond // 1000 * 1000
        )
        assert read(api, checkout) == listed

    def test_of_a_refund(self, api: Api, at: Bring) -> None:
        checkout = at("refunded")
        [shown] = read(api, checkout)["refunds"]
        assert set(shown) == REFUND
        assert (shown["status"], shown["amount"], shown["failure_reason"]) == ("settled", 9000, None)
        assert (
            TIMESTAMP.fullmatch(shown["settled_at"])
            and shown["settled_at"] == read(api, checkout)["last_refund_at"]
        )

    @pytest.mark.rule("read.refunds")
    def test_keep_a_failed_refund_next_to_its_successor(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        checkout = pay(unpaid, "4000000000005126")
        captures.capture(api.merchant, checkout.pk, cause=CAUSE)
        refunds.accept(api.merchant, checkout.pk, ref="r-1", cause=CAUSE)
        tasks.finish_operations()
        Operation.objects.filter(state="pending").update(next_attempt_at="2020-01-01T00:00Z")
        tasks.finish_operations()
        shown = read(api, checkout)
        assert set(shown) == ALWAYS | HELD | PAID | {"refunds"}
        assert (shown["status"], shown["refunds"][0]["status"]) == ("captured", "failed")
        answer = api.post(f"checkouts/{checkout.pk}/refund", {"merchant_refund_ref": "r-1"})
        assert (answer.status_code, answer.json()["data"]) == (200, shown["refunds"][0])
        assert api.post(f"checkouts/{checkout.pk}/refund", {"merchant_refund_ref": "r-2"}).status_code == 204
        newest = [refund["merchant_refund_ref"] for refund in read(api, checkout)["refunds"]]
        assert newest == ["r-2", "r-1"]

    @pytest.mark.rule("read.actions")
    def test_name_an_open_card_operation(self, api: Api, held: Checkout) -> None:
        operations.begin(Payment.objects.get(), Operation.Kind.CAPTURE, now=timezone.now(), cause=CAUSE)
        assert set(read(api, held)) == ALWAYS | HELD | {"pending_operation"}
        assert read(api, held)["pending_operation"] == "capture"

    @pytest.mark.rule("read.shares")
    def test_of_a_split_count_shares_and_name_no_one(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        first, second, _ = mates.split(unpaid, 2000, 1500, 1000)
        assert set(read(api, unpaid)) == ALWAYS | {"payable_until", "shares"}
        captures.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(first)
        assert mates.settled(first) == "reimbursed"
        mates.pay(second, mates.AMYS)
        mates.pump(unpaid.pk)
        assert read(api, unpaid)["shares"] == {
            "count": 3,
            "pledged_count": 0,
            "paid_count": 2,
            "paid_amount": 3500,
        }

    @pytest.mark.rule("create.answer")
    def test_of_a_creation_are_those_of_the_specification(self, api: Api) -> None:
        answer = api.post("checkouts", order())
        assert answer.status_code == 201 and list(answer.json()) == ["data"]
        made = answer.json()["data"]
        assert set(made) == {"checkout_uuid", "status", "checkout_url", "expires_at", "payable_until"}
        assert made["checkout_url"].endswith(f"/pay?id={made['checkout_uuid']}")

    @pytest.mark.rule("read.fields")
    @pytest.mark.parametrize("verb", ["capture", "cancel"])
    def test_of_an_actions_response_equal_those_of_a_read(self, api: Api, held: Checkout, verb: str) -> None:
        answer = api.post(f"checkouts/{held.pk}/{verb}", {})
        assert answer.status_code == 200 and answer.json()["data"] == read(api, held)


def test_bodies_are_compact_utf_8_json(api: Api) -> None:
    made = api.post("checkouts", order(merchant_order_id="Größe 👟")).json()["data"]
    answer = api.get(f"checkouts/{made['checkout_uuid']}")
    assert answer["Content-Type"] == "application/json" and "Größe 👟" in answer.content.decode()
    assert answer.content == json.dumps(answer.json(), ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.rule("read.refunds")
class TestRefundsThatFailAgainAndAgain:
    def test_are_limited_to_the_newest_hundred_in_a_read(self, api: Api, captured: Checkout) -> None:
        now = timezone.now()
        Refund.objects.bulk_create(
            Refund(
                merchant=captured.merchant,
                checkout=captured,
                merchant_refund_ref=f"r-{number}",
                amount=captured.amount,
                status="failed",
                failure_reason="card_account_closed",
                created_at=now + timedelta(seconds=number),
            )
            for number in range(150)
        )
        told = api.get(f"checkouts/{captured.pk}").json()["data"]["refunds"]
        assert [one["merchant_refund_ref"] for one in told] == [
            f"r-{number}" for number in range(149, 49, -1)
        ]
