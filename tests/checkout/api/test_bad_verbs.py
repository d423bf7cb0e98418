"""The service refuses some reads, captures, cancellations and refunds."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from uuid_utils.compat import uuid7

from checkout import captures
from checkout.models import Checkout, Refund
from payments import operations
from payments.models import Operation, Payment
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE, make_late
from tests.outages import InDoubt, pass_time
from tests.refusals import MISSING, nothing_moves, refused, without
from webhooks.models import Event

Bring = Callable[[str], Checkout]
OTHER_AMOUNTS = [-(2**63), -1, 0, 1, 8_999, 9_001, 99_999_999, 10**8, 2**63 - 1]
VERBS = ("capture", "cancel", "refund")
REF = {"merchant_refund_ref": "r-2"}
ACTIONS = {"created": ["cancel"], "authorized": ["capture", "cancel"], "captured": ["refund"]}
# For each status, the actions that the service refuses. Other tests show that the remaining actions work.
CONFLICTS = [
    ("created", "capture", "not_capturable"),
    ("created", "refund", "not_refundable"),
    ("expired", "capture", "not_capturable"),
    ("expired", "cancel", "not_cancellable"),
    ("expired", "refund", "not_refundable"),
    ("authorized", "refund", "not_refundable"),
    ("voided", "capture", "not_capturable"),
    ("voided", "refund", "not_refundable"),
    ("lapsed", "capture", "not_capturable"),
    ("lapsed", "refund", "not_refundable"),
    ("captured", "cancel", "not_cancellable"),
    ("refunding", "capture", "not_capturable"),
    ("refunding", "cancel", "not_cancellable"),
    ("refunding", "refund", "not_refundable"),
    ("refunded", "capture", "not_capturable"),
    ("refunded", "cancel", "not_cancellable"),
    ("refunded", "refund", "not_refundable"),
]
# Repeated actions that succeed: the response is 200, and no row changes.
REPEATS = [("captured", "capture"), ("voided", "cancel"), ("lapsed", "cancel")]


def call(api: Api, checkout: Checkout, verb: str, **body: Any) -> Any:
    return api.post(f"checkouts/{checkout.pk}/{verb}", (REF if verb == "refund" else {}) | body)


def _payment_of(checkout: Checkout) -> Payment:
    """Create the payment of a customer who has begun to pay."""
    return Payment.objects.create(
        merchant=checkout.merchant,
        subject=checkout.pk,
        checkout_uuid=checkout.pk,
        amount=checkout.amount,
        currency=checkout.currency,
    )


class TestUnknownCheckout:
    @pytest.mark.rule("api.strangers")
    @pytest.mark.parametrize(
        "name",
        [
            "2f1c9a44-6d0b-4c52-9e0d-5b7a3f6f8e21",
            "01934c7e-2b8a-7cc3-9a41-d2f3c7a1b605",
            str(UUID(int=0)),
            "abc",
            "{hex}",
            "{{{uuid}}}",
            "urn:uuid:{uuid}",
            "%20{uuid}",
            "{uuid}%0a",
            "{uuid}%00",
            "%00",
            "..",
            "%ff",
            "a" * 5_000,
            "1' OR '1'='1",
            "１{uuid}",
        ],
        ids=lambda name: name[:12],
    )
    def test_is_not_found(self, api: Api, held: Checkout, name: str) -> None:
        path = f"checkouts/{name.format(hex=held.pk.hex, uuid=held.pk)}"
        with nothing_moves():
            refused(api.get(path), 404, "checkout_not_found")
            for verb in VERBS:
                refused(api.post(f"{path}/{verb}", REF), 404, "checkout_not_found")

    @pytest.mark.rule("api.strangers")
    def test_of_another_merchant_is_not_found_either(self, rival_api: Api, held: Checkout) -> None:
        with nothing_moves():
            strangers = rival_api.get(f"checkouts/{held.pk}", x_request_id="same")
            nobodys = rival_api.get(f"checkouts/{uuid7()}", x_request_id="same")
            for verb in VERBS:
                refused(call(rival_api, held, verb), 404, "checkout_not_found")
        assert rival_api.get("checkouts").json()["data"]["checkouts"] == []
        assert strangers.json()["error"] | {"request_id": ""} == nobodys.json()["error"] | {"request_id": ""}

    def test_known_checkout_is_found_in_upper_case_and_with_a_request_body(
        self, api: Api, held: Checkout
    ) -> None:
        path = f"/api/merchant/v1/checkouts/{str(held.pk).upper()}"
        answer = api.client.generic("GET", path, b"{", "text/plain", headers=api.headers({}))
        assert answer.json()["data"]["checkout_uuid"] == str(held.pk)


class TestConflict:
    @pytest.mark.rule("api.conflict", "cancel.refused", "capture.refused", "refund.refused")
    @pytest.mark.parametrize(("status", "verb", "code"), CONFLICTS)
    def test_names_the_status_and_the_available_actions(
        self, api: Api, at: Bring, status: str, verb: str, code: str
    ) -> None:
        checkout = at(status)
        with nothing_moves():
            error = refused(call(api, checkout, verb), 409, code)
        actual = {"lapsed": "voided"}.get(status, status)
        assert error["details"] == [{"status": actual, "available_actions": ACTIONS.get(actual, [])}]

    @pytest.mark.rule("cancel.repeat", "capture.repeat")
    @pytest.mark.parametrize(("status", "verb"), REPEATS)
    def test_does_not_occur_if_the_action_was_done_already(
        self, api: Api, at: Bring, status: str, verb: str
    ) -> None:
        checkout = at(status)
        with nothing_moves():
            answer = call(api, checkout, verb)
        assert answer.status_code == 200
        assert answer.json() == api.get(f"checkouts/{checkout.pk}").json()

    @pytest.mark.rule("capture.deadline", "lapse.whoever", "refund.refused")
    @pytest.mark.parametrize("status", ["created", "authorized"])
    @pytest.mark.parametrize(("verb", "code"), [("capture", "not_capturable"), ("refund", "not_refundable")])
    def test_finds_a_passed_deadline_before_any_sweep(
        self, api: Api, at: Bring, status: str, verb: str, code: str
    ) -> None:
        checkout = at(status)
        make_late(checkout)
        error = refused(call(api, checkout, verb), 409, code)
        assert not Operation.objects.filter(kind="capture").exists() and not Refund.objects.exists()
        ended = {"created": "expired", "authorized": "voided"}[status]
        assert error["details"] == [{"status": ended, "available_actions": []}]
        assert Checkout.objects.get().status == ended
        assert api.get(f"checkouts/{checkout.pk}").json()["data"]["status"] == ended

    @pytest.mark.rule("expiry.open_operation")
    @pytest.mark.parametrize(
        ("verb", "code"),
        [("capture", "not_capturable"), ("cancel", "not_cancellable"), ("refund", "not_refundable")],
    )
    def test_names_expired_once_a_silent_bank_no_longer_delays_the_deadline(
        self, api: Api, in_doubt: InDoubt, verb: str, code: str
    ) -> None:
        authorize = in_doubt("authorize")
        checkout = Checkout.objects.get()
        make_late(checkout)
        refused(call(api, checkout, verb), 409, code if verb == "refund" else "operation_in_progress")
        pass_time(authorize, seconds=61)
        error = refused(call(api, checkout, verb), 409, code)
        assert error["details"] == [{"status": "expired", "available_actions": []}]
        assert Checkout.objects.get().status == "expired"

    def test_does_not_occur_if_a_late_cancel_finds_a_lapsed_hold(self, api: Api, held: Checkout) -> None:
        make_late(held)
        read = call(api, held, "cancel", reason="too late").json()["data"]
        assert (read["status"], read["void_reason"]) == ("voided", "auth_expired")
        assert Event.objects.filter(type="checkout.voided").count() == 1

    @pytest.mark.rule("api.retry_after", "cancel.open_operation", "refund.open_operation")
    @pytest.mark.parametrize(
        ("status", "kind"),
        [("created", "authorize"), ("authorized", "capture"), ("authorized", "void"), ("captured", "refund")],
    )
    def test_with_an_open_card_operation_asks_to_try_again(
        self, api: Api, at: Bring, monkeypatch: pytest.MonkeyPatch, status: str, kind: str
    ) -> None:
        monkeypatch.setattr(captures, "JOIN_SECONDS", 0.0)
        checkout = at(status)
        payment = Payment.objects.first() or _payment_of(checkout)
        operations.begin(payment, Operation.Kind(kind), now=timezone.now(), cause=CAUSE)
        assert api.get(f"checkouts/{checkout.pk}").json()["data"]["pending_operation"] == kind
        for verb in {"created": ("capture", "cancel"), "captured": ("refund",)}.get(status, VERBS):
            with nothing_moves():
                answer = call(api, checkout, verb)
                refused(answer, 409, "operation_in_progress")
            assert answer["Retry-After"] == "1"

    @pytest.mark.rule("refund.open_operation", "refund.refused")
    def test_refuses_a_refund_during_the_authorization_because_waiting_cannot_help(
        self, api: Api, at: Bring
    ) -> None:
        checkout = at("created")
        operations.begin(_payment_of(checkout), Operation.Kind.AUTHORIZE, now=timezone.now(), cause=CAUSE)
        with nothing_moves():
            answer = call(api, checkout, "refund")
        assert refused(answer, 409, "not_refundable")["details"][0]["status"] == "created"
        assert "Retry-After" not in answer

    @pytest.mark.rule("cancel.refused")
    @pytest.mark.parametrize(
        ("status", "verb", "code"),
        [
            (status, verb, code)
            for status, verb, code in CONFLICTS
            if status in ("expired", "voided", "lapsed")
        ]
        + [(status, "cancel", "not_cancellable") for status in ("captured", "refunding", "refunded")]
        + [(status, "capture", "not_capturable") for status in ("refunding", "refunded")]
        + [(status, "refund", "not_refundable") for status in ("refunding", "refunded")],
    )
    def test_that_waiting_cannot_resolve_is_reported_despite_an_open_operation(
        self, api: Api, at: Bring, status: str, verb: str, code: str
    ) -> None:
        checkout = at(status)
        Operation.objects.filter(ended_at=None).update(state="pending", attempts=1)
        if not Operation.objects.filter(ended_at=None).exists():
            payment = Payment.objects.first() or _payment_of(checkout)
            operations.begin(payment, Operation.Kind.REFUND, now=timezone.now(), cause=CAUSE)
        with nothing_moves():
            error = refused(call(api, checkout, verb), 409, code)
        actual = {"lapsed": "voided"}.get(status, status)
        assert error["details"] == [{"status": actual, "available_actions": []}]

    @pytest.mark.rule("operator.stop")
    @pytest.mark.parametrize(
        ("status", "verb", "expected"),
        [("authorized", "capture", 403), ("authorized", "cancel", 200), ("captured", "refund", 204)],
    )
    def test_of_a_suspended_merchant_does_not_affect_calls_that_return_money(
        self, api: Api, at: Bring, status: str, verb: str, expected: int
    ) -> None:
        checkout = at(status)
        factories.stop(api.merchant)
        assert api.get(f"checkouts/{checkout.pk}").status_code == 200
        if expected != 403:
            assert call(api, checkout, verb).status_code == expected
            return
        with nothing_moves():
            refused(call(api, checkout, verb), 403, "merchant_suspended")


@pytest.mark.rule("capture.full")
class TestCaptureBody:
    @pytest.mark.parametrize("amount", OTHER_AMOUNTS)
    def test_of_another_amount_is_refused(self, api: Api, held: Checkout, amount: int) -> None:
        with nothing_moves():
            error = refused(
                call(api, held, "capture", amount=amount), 422, "partial_capture_not_supported", "amount"
            )
        assert error["details"] == [{"param": "amount", "expected": 9_000}]

    @pytest.mark.parametrize("amount", ["9000", 9000.0, 9e3, True, None, [], {}], ids=repr)
    def test_of_no_amount_is_refused(self, api: Api, held: Checkout, amount: Any) -> None:
        with nothing_moves():
            refused(call(api, held, "capture", amount=amount), 422, "validation_failed", "amount")

    def test_with_a_huge_number_is_invalid_json(self, api: Api, held: Checkout) -> None:
        with nothing_moves():
            refused(call(api, held, "capture", amount=10**400), 400, "invalid_json")

    @pytest.mark.parametrize("body", [b"", b"{}", b'{"amount": 9000}', b'{"x": 1}'])
    def test_of_the_full_amount_is_taken(self, api: Api, held: Checkout, body: bytes) -> None:
        answer = api.post(f"checkouts/{held.pk}/capture", body)
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")


class TestCancelBody:
    @pytest.mark.parametrize(
        "reason", ["x" * 256, "x" * 10_000, "a\x00b", 5, True, [], {}], ids=lambda r: repr(r)[:9]
    )
    def test_of_no_reason_is_refused(self, api: Api, held: Checkout, reason: Any) -> None:
        with nothing_moves():
            refused(call(api, held, "cancel", reason=reason), 422, "validation_failed", "reason")

    @pytest.mark.rule("cancel.repeat")
    @pytest.mark.parametrize(
        "body", [b"", b"{}", b'{"reason": null}', b'{"reason": "Sold out"}', b'{"amount": 1}']
    )
    def test_repeated_voids_once(self, api: Api, held: Checkout, body: bytes) -> None:
        answer = api.post(f"checkouts/{held.pk}/cancel", body)
        assert answer.status_code == 200 and answer.json()["data"]["void_reason"] == "merchant_cancel"
        assert "Sold out" not in answer.content.decode()
        with nothing_moves():
            assert call(api, held, "cancel", reason="again").content == answer.content
        assert Event.objects.filter(type="checkout.voided").count() == 1


class TestRefundBody:
    @pytest.mark.rule("refund.ref")
    @pytest.mark.parametrize(
        "ref",
        [MISSING, None, "", "  ", 5, True, [], {}, "x" * 256, "a\x00b", "a\nb"],
        ids=lambda ref: repr(ref)[:9],
    )
    def test_without_a_reference_is_refused(self, api: Api, captured: Checkout, ref: Any) -> None:
        with nothing_moves():
            body = without({"merchant_refund_ref": ref, "reason": "Sold out"})
            answer = api.post(f"checkouts/{captured.pk}/refund", body)
            refused(answer, 422, "validation_failed", "merchant_refund_ref")

    @pytest.mark.parametrize("reason", ["x" * 501, "a\x00b", 5, [], {}], ids=lambda reason: repr(reason)[:9])
    def test_of_no_reason_is_refused(self, api: Api, captured: Checkout, reason: Any) -> None:
        with nothing_moves():
            refused(call(api, captured, "refund", reason=reason), 422, "validation_failed", "reason")

    @pytest.mark.rule("refund.full")
    @pytest.mark.parametrize("amount", OTHER_AMOUNTS)
    def test_of_a_part_is_refused(self, api: Api, captured: Checkout, amount: int) -> None:
        with nothing_moves():
            error = refused(
                call(api, captured, "refund", amount=amount), 422, "partial_refund_not_supported", "amount"
            )
        assert error["details"] == [{"param": "amount", "expected": 9_000}]

    @pytest.mark.parametrize("amount", ["9000", 9000.0, True, None], ids=repr)
    def test_of_no_amount_is_refused(self, api: Api, captured: Checkout, amount: Any) -> None:
        with nothing_moves():
            refused(call(api, captured, "refund", amount=amount), 422, "validation_failed", "amount")

    @pytest.mark.parametrize(
        "fields",
        [{}, {"reason": None}, {"reason": "<b>'; --"}, {"amount": 9000}, {"reason": "x" * 500, "x": 1}],
    )
    def test_of_everything_is_accepted(self, api: Api, captured: Checkout, fields: dict[str, Any]) -> None:
        answer = call(api, captured, "refund", **fields)
        assert (answer.status_code, answer.content) == (204, b"")
        assert "Content-Type" not in answer
        [refund] = api.get(f"checkouts/{captured.pk}").json()["data"]["refunds"]
        assert (refund["merchant_refund_ref"], refund["reason"]) == ("r-2", fields.get("reason"))


class TestRefundReference:
    @pytest.mark.rule("refund.ref")
    @pytest.mark.parametrize("status", ["refunding", "refunded"])
    def test_repeated_answers_with_the_same_refund(self, api: Api, at: Bring, status: str) -> None:
        checkout = at(status)
        with nothing_moves():
            answer = call(api, checkout, "refund", merchant_refund_ref="r-1", reason="another", amount=9000)
        assert answer.status_code == 200
        assert answer.json() == {"data": api.get(f"checkouts/{checkout.pk}").json()["data"]["refunds"][0]}
        assert answer.json()["data"]["refund_uuid"] == str(Refund.objects.get().pk)

    @pytest.mark.parametrize("status", ["refunding", "refunded"])
    @pytest.mark.parametrize("amount", [1, 8999, 9001])
    def test_repeated_for_a_part_is_refused(self, api: Api, at: Bring, status: str, amount: int) -> None:
        checkout = at(status)
        with nothing_moves():
            answer = call(api, checkout, "refund", merchant_refund_ref="r-1", amount=amount)
            error = refused(answer, 422, "partial_refund_not_supported", "amount")
        assert error["details"][0]["expected"] == 9000

    @pytest.mark.rule("refund.ref_conflict")
    @pytest.mark.parametrize("status", ["created", "authorized", "captured"])
    def test_of_another_checkout_is_refused(
        self, api: Api, at: Bring, pay: Callable[..., Checkout], status: str
    ) -> None:
        at("refunding")
        other = factories.checkout(api.merchant)
        if status != "created":
            pay(other)
        if status == "captured":
            captures.capture(other.merchant, other.pk, cause=CAUSE)
        with nothing_moves():
            answer = call(api, other, "refund", merchant_refund_ref="r-1")
            error = refused(answer, 409, "refund_ref_conflict")
        assert [conflict["status"] for conflict in error["details"]] == [status]

    def test_of_another_merchant_can_be_used(
        self, rival_api: Api, at: Bring, pay: Callable[..., Checkout]
    ) -> None:
        at("refunding")
        own = pay(factories.checkout(rival_api.merchant))
        captures.capture(own.merchant, own.pk, cause=CAUSE)
        assert call(rival_api, own, "refund", merchant_refund_ref="r-1").status_code == 204
