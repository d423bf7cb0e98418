"""The promises of the merchant API: what each state shows, keys that replay, pages, statements."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from checkout import refunds, tasks, transitions
from checkout.models import ApiCall, Checkout, Refund
from config.errors import ERRORS
from config.lib.bulkhead import Busy
from payments import operations
from payments.models import Operation, Payment
from tests import factories, mates
from tests.conftest import Api
from tests.factories import CAUSE, order
from tests.refusals import nothing_moves, refused
from webhooks.models import Event, Subscription

Bring = Callable[[str], Checkout]
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

ALWAYS = {
    "checkout_uuid", "merchant_order_id", "status", "amount", "currency", "checkout_url", "expires_at",
    "created_at", "items", "available_actions",
}  # fmt: skip
HELD = {"authorized_at", "capture_before"}
VOIDED = {"voided_at", "void_reason"}
PAID = {"captured_at", "refunded_amount", "last_refund_at", "merchant_processor_fee", "merchant_service_fee"}
SHOWN = {
    "created": ALWAYS,
    "expired": ALWAYS | {"expired_at"},
    "authorized": ALWAYS | HELD,
    "voided": ALWAYS | HELD | VOIDED,
    "lapsed": ALWAYS | HELD | VOIDED,
    "captured": ALWAYS | HELD | PAID,
    "refunding": ALWAYS | HELD | PAID | {"refunds"},
    "refunded": ALWAYS | HELD | PAID | {"refunds"},
}
REFUND = {
    "refund_uuid", "merchant_refund_ref", "reason", "status", "amount", "created_at", "settled_at",
    "failure_reason",
}  # fmt: skip


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
    def test_tell_what_is_true(self, api: Api, at: Bring, status: str, facts: dict[str, Any]) -> None:
        shown = read(api, at(status))
        assert {name: shown[name] for name in facts} == facts

    def test_of_one_voided_before_payment_know_no_hold(self, api: Api, unpaid: Checkout) -> None:
        shown = api.post(f"checkouts/{unpaid.pk}/cancel").json()["data"]
        assert set(shown) == ALWAYS | VOIDED
        assert not Event.objects.exists()

    @pytest.mark.rule("expiry.end", "lapse.whoever")
    @pytest.mark.parametrize(("status", "ended_at"), [("created", "expired_at"), ("authorized", "voided_at")])
    def test_of_a_late_one_say_that_it_ended_at_its_deadline(
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
    def test_of_a_failed_refund_stay_beside_the_next(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        checkout = pay(unpaid, "4000000000005126")
        transitions.capture(api.merchant, checkout.pk, cause=CAUSE)
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
    def test_of_a_split_count_without_naming_anybody(
        self, api: Api, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        first, second, _ = mates.split(unpaid, 2000, 1500, 1000)
        assert set(read(api, unpaid)) == ALWAYS | {"shares"}
        transitions.capture(unpaid.merchant, pay(unpaid).pk, cause=CAUSE)
        mates.pay(first)
        assert mates.settled(first) == "reimbursed"
        mates.pay(second, mates.AMYS)
        mates.pump(unpaid.pk)
        assert read(api, unpaid)["shares"] == {"count": 3, "paid_count": 2, "paid_amount": 3500}

    @pytest.mark.rule("create.answer")
    def test_of_a_creation_are_the_specs_four(self, api: Api) -> None:
        answer = api.post("checkouts", order())
        assert answer.status_code == 201 and list(answer.json()) == ["data"]
        made = answer.json()["data"]
        assert set(made) == {"checkout_uuid", "status", "checkout_url", "expires_at"}
        assert made["checkout_url"].endswith(f"/pay?id={made['checkout_uuid']}")

    @pytest.mark.rule("read.fields")
    @pytest.mark.parametrize("verb", ["capture", "cancel"])
    def test_of_a_verbs_answer_are_those_of_a_read(self, api: Api, held: Checkout, verb: str) -> None:
        answer = api.post(f"checkouts/{held.pk}/{verb}", {})
        assert answer.status_code == 200 and answer.json()["data"] == read(api, held)


class TestRequestId:
    @pytest.mark.rule("api.request_id")
    @pytest.mark.parametrize("given", ["a", "Order-1._x", "x" * 64])
    def test_is_kept_when_it_is_well_formed(self, api: Api, given: str) -> None:
        assert api.get("checkouts", x_request_id=given)["X-Request-Id"] == given
        assert (
            refused(api.get("checkouts/x", x_request_id=given), 404, "checkout_not_found")["request_id"]
            == given
        )

    @pytest.mark.rule("api.request_id")
    @pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a/b", "ä", "a\nb", "<script>"])
    def test_is_replaced_when_it_is_not(self, api: Api, given: str) -> None:
        answer = api.get("checkouts/x", x_request_id=given)
        assert (
            re.fullmatch(r"[A-Za-z0-9._-]{1,64}", answer["X-Request-Id"]) and answer["X-Request-Id"] != given
        )
        refused(answer, 404, "checkout_not_found")

    @pytest.mark.rule("api.request_id")
    def test_is_kept_with_the_call_and_the_change(self, api: Api) -> None:
        api.post("checkouts", order(), x_request_id="mine")
        assert ApiCall.objects.get().request_id == "mine"
        assert Checkout.objects.get().changes.get().request_id == "mine"

    def test_is_on_answers_of_every_kind(self, api: Api, captured: Checkout) -> None:
        made = api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"})
        for answer in (made, api.get("checkouts"), api.client.get("/pay"), api.client.get("/livez")):
            assert answer["X-Request-Id"]

    @pytest.mark.rule("api.no_store")
    def test_reads_and_writes_are_never_stored(self, api: Api, captured: Checkout) -> None:
        answers = [
            api.get("checkouts"),
            api.get(f"checkouts/{captured.pk}"),
            api.post("checkouts", order()),
            api.post(f"checkouts/{captured.pk}/capture"),
            api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"}),
            api.get("webhooks/deliveries"),
        ]
        assert {answer["Cache-Control"] for answer in answers} == {"no-store"}


def age(**ago: float) -> None:
    """Let every recorded call have come so long ago."""
    ApiCall.objects.update(created_at=timezone.now() - timedelta(**ago))


class TestIdempotencyKey:
    @pytest.mark.rule("idempotency.replay")
    def test_replays_a_creation_byte_for_byte(self, api: Api) -> None:
        first = api.post("checkouts", order(), idempotency_key="k", x_request_id="one")
        with nothing_moves():
            again = api.post("checkouts", order(), idempotency_key="k", x_request_id="two")
        assert "Idempotent-Replay" not in first and again["Idempotent-Replay"] == "true"
        assert (again.status_code, again.content) == (201, first.content)
        assert (again["Content-Type"], again["Cache-Control"]) == ("application/json", "no-store")
        assert again["X-Request-Id"] == "two"

    @pytest.mark.rule("idempotency.replay")
    @pytest.mark.parametrize("verb", ["capture", "cancel"])
    def test_replays_a_verb_as_it_was_answered(self, api: Api, held: Checkout, verb: str) -> None:
        first = api.post(f"checkouts/{held.pk}/{verb}", idempotency_key="k")
        if verb == "capture":
            refunds.accept(api.merchant, held.pk, ref="r", cause=CAUSE)
        with nothing_moves():
            again = api.post(f"checkouts/{held.pk}/{verb}", idempotency_key="k")
        assert (again.status_code, again.content) == (200, first.content)
        assert again["Idempotent-Replay"] == "true"

    def test_replays_a_refund_as_a_204(self, api: Api, captured: Checkout) -> None:
        for replays in (False, True):
            answer = api.post(
                f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"}, idempotency_key="k"
            )
            assert (answer.status_code, answer.content) == (204, b"")
            assert ("Idempotent-Replay" in answer) == replays and "Content-Type" not in answer
        assert Refund.objects.count() == 1

    @pytest.mark.parametrize(
        ("verb", "body", "code"),
        [
            ("capture", {"amount": 1}, "partial_capture_not_supported"),
            ("refund", {"merchant_refund_ref": "r", "amount": 1}, "partial_refund_not_supported"),
            ("cancel", {"reason": 5}, "validation_failed"),
        ],
    )
    def test_replays_a_final_refusal_though_it_would_work_now(
        self, api: Api, at: Bring, verb: str, body: Any, code: str
    ) -> None:
        checkout, status = at("created"), ERRORS[code].status
        first = api.post(f"checkouts/{checkout.pk}/{verb}", body, idempotency_key="k", x_request_id="one")
        refused(first, status, code)
        at("authorized" if verb == "capture" else "captured")
        with nothing_moves():
            again = api.post(f"checkouts/{checkout.pk}/{verb}", body, idempotency_key="k", x_request_id="two")
        assert (again.status_code, again.content) == (status, first.content)
        assert (again["Idempotent-Replay"], again["X-Request-Id"]) == ("true", "two")

    @pytest.mark.rule("idempotency.other")
    def test_of_another_body_path_or_checkout_is_refused(self, api: Api, held: Checkout) -> None:
        api.post(f"checkouts/{held.pk}/cancel", {"reason": "Sold out"}, idempotency_key="k")
        other = factories.checkout(api.merchant)
        for path, body in (
            (f"checkouts/{held.pk}/cancel", {"reason": "sold out"}),
            (f"checkouts/{held.pk}/cancel", b'{"reason":"Sold out"}'),
            (f"checkouts/{held.pk}/cancel", None),
            (f"checkouts/{held.pk}/capture", {"reason": "Sold out"}),
            (f"checkouts/{other.pk}/cancel", {"reason": "Sold out"}),
            ("checkouts", order()),
        ):
            with nothing_moves():
                refused(api.post(path, body, idempotency_key="k"), 422, "idempotency_key_reused")

    @pytest.mark.rule("idempotency.in_flight")
    @pytest.mark.parametrize("verb", ["capture", "cancel"])
    def test_in_flight_is_a_conflict_until_it_is_taken_over(
        self, api: Api, held: Checkout, verb: str
    ) -> None:
        path = f"checkouts/{held.pk}/{verb}"
        first = api.post(path, idempotency_key="k")
        ApiCall.objects.update(status=None, body=None)  # as if its process had died before it kept the answer
        age(seconds=89)
        with nothing_moves():
            waiting = api.post(path, idempotency_key="k")
            refused(waiting, 409, "idempotency_in_progress")
            refused(api.post(path, {"x": 1}, idempotency_key="k"), 422, "idempotency_key_reused")
        assert waiting["Retry-After"] == "1"
        age(seconds=91)
        with nothing_moves():
            taken = api.post(path, idempotency_key="k")
        assert (taken.status_code, taken.content) == (200, first.content)
        assert "Idempotent-Replay" not in taken
        assert api.post(path, idempotency_key="k")["Idempotent-Replay"] == "true"

    @pytest.mark.rule("idempotency.kept")
    @pytest.mark.parametrize(
        ("body", "headers", "code"),
        [
            (b"{", {}, "invalid_json"),
            (b"{}", {"content-type": "text/plain"}, "unsupported_media_type"),
            (b'{"a":"' + b"a" * 262_144 + b'"}', {}, "payload_too_large"),
            (b"{}", {"authorization": "Bearer x"}, "invalid_token"),
        ],
        ids=["400", "415", "413", "401"],
    )
    def test_is_free_again_after_what_was_no_request(
        self, api: Api, body: bytes, headers: dict[str, str], code: str
    ) -> None:
        content_type = headers.get("content-type", "application/json")
        given = api.headers({"idempotency-key": "k"} | headers)
        answer = api.client.generic("POST", "/api/merchant/v1/checkouts", body, content_type, headers=given)
        assert answer.json()["error"]["code"] == code
        assert not ApiCall.objects.exclude(idempotency_key=None).exists()
        made = api.post("checkouts", order(), idempotency_key="k")
        assert made.status_code == 201 and "Idempotent-Replay" not in made

    def test_is_free_again_after_a_missing_scope_and_a_suspension(self, api: Api) -> None:
        token, api.token = api.token, api.get_token(scope="checkouts:read")
        refused(api.post("checkouts", order(), idempotency_key="k"), 403, "insufficient_scope")
        api.token = token
        factories.stop(api.merchant)
        refused(api.post("checkouts", order(), idempotency_key="k"), 403, "merchant_suspended")
        factories.stop(api.merchant, is_stopped=False)
        assert api.post("checkouts", order(), idempotency_key="k").status_code == 201

    @pytest.mark.parametrize(
        ("verb", "body", "code"),
        [
            ("capture", {}, "not_capturable"),
            ("refund", {"merchant_refund_ref": "r"}, "not_refundable"),
        ],
    )
    def test_is_free_again_after_what_a_state_refused(
        self, api: Api, at: Bring, verb: str, body: Any, code: str
    ) -> None:
        checkout = at("created")
        for _ in range(2):
            answer = api.post(f"checkouts/{checkout.pk}/{verb}", body, idempotency_key="k")
            refused(answer, 409, code)
            assert "Idempotent-Replay" not in answer
        at("authorized" if verb == "capture" else "captured")
        answer = api.post(f"checkouts/{checkout.pk}/{verb}", body, idempotency_key="k")
        assert answer.status_code in (200, 204)
        again = api.post(f"checkouts/{checkout.pk}/{verb}", body, idempotency_key="k")
        assert (again.content, again["Idempotent-Replay"]) == (answer.content, "true")

    def test_of_nobodys_checkout_is_free(self, api: Api, unpaid: Checkout) -> None:
        for _ in range(2):
            answer = api.post(f"checkouts/{UUID(int=0)}/cancel", idempotency_key="k")
            refused(answer, 404, "checkout_not_found")
        assert api.post(f"checkouts/{unpaid.pk}/cancel", idempotency_key="k").status_code == 200

    def test_is_free_again_after_an_open_card_operation(self, api: Api, held: Checkout) -> None:
        operation = operations.begin(
            Payment.objects.get(), Operation.Kind.VOID, now=timezone.now(), cause=CAUSE
        )
        path = f"checkouts/{held.pk}/capture"
        refused(api.post(path, idempotency_key="k"), 409, "operation_in_progress")
        operation.delete()
        assert api.post(path, idempotency_key="k").status_code == 200

    @pytest.mark.rule("idempotency.kept")
    def test_is_free_again_after_what_somebody_else_could_not_do(
        self, api: Api, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = f"checkouts/{held.pk}/cancel"
        for error, status, code in (
            (transitions.ProviderRefused("card_declined"), 502, "provider_error"),
            (Busy(), 503, "service_unavailable"),
            (transitions.OutcomeUnknown(), 504, "outcome_unknown"),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(transitions, "cancel", Mock(side_effect=error))
                refused(api.post(path, idempotency_key="k"), status, code)
        assert api.post(path, idempotency_key="k").status_code == 200

    @pytest.mark.rule("idempotency.key")
    def test_belongs_to_its_merchant(self, api: Api, rival_api: Api) -> None:
        mine = api.post("checkouts", order(), idempotency_key="k").json()["data"]
        theirs = rival_api.post("checkouts", order(), idempotency_key="k")
        assert theirs.status_code == 201 and theirs.json()["data"]["checkout_uuid"] != mine["checkout_uuid"]

    @pytest.mark.rule("idempotency.kept")
    @pytest.mark.parametrize(("hours", "made"), [(23.9, 1), (24.1, 2)])
    def test_is_kept_for_a_day(self, api: Api, hours: float, made: int) -> None:
        api.post("checkouts", order(), idempotency_key="k")
        age(hours=hours)
        assert api.post("checkouts", order(), idempotency_key="k").status_code == 201
        assert Checkout.objects.count() == made

    def test_is_forgotten_by_the_pump_after_a_day(self, api: Api) -> None:
        api.post("checkouts", order(), idempotency_key="k")
        age(hours=23.9)
        tasks.delete_idempotency_keys()
        assert ApiCall.objects.get().idempotency_key == "k"
        age(hours=24.1)
        tasks.delete_idempotency_keys()
        call = ApiCall.objects.get()
        assert (call.idempotency_key, call.body) == (None, None) and call.checkout_uuid is not None

    def test_is_not_asked_for(self, api: Api) -> None:
        assert api.post("checkouts", order()).status_code == 201
        assert ApiCall.objects.get().body is None

    @pytest.mark.rule("idempotency.elsewhere")
    def test_is_ignored_where_nothing_is_replayed(self, api: Api, unpaid: Checkout) -> None:
        body = {"url": "http://127.0.0.1:9/", "event_types": ["*"]}
        assert api.post("webhooks/subscription", body, idempotency_key="k").status_code == 201
        secrets = {api.post("webhooks/secret/rotate", idempotency_key="k").content for _ in range(2)}
        assert len(secrets) == 2
        assert api.get("checkouts", idempotency_key="ключ").status_code == 200


@pytest.mark.rule("idempotency.at_once")
@pytest.mark.django_db(transaction=True)
class TestSameKeyAtOnce:
    """On real connections: the rows decide, not the process."""

    def at_once(self, api: Api, path: str, body: Any) -> list[Any]:
        together = threading.Barrier(4)

        def call(_: int) -> Any:
            together.wait()
            try:
                return api.post(path, body, idempotency_key="k")
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(call, range(4)))

    def test_makes_one_checkout(self, api: Api) -> None:
        answers = self.at_once(api, "checkouts", order())
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.content for answer in answers}) == Checkout.objects.count() == 1
        assert sum("Idempotent-Replay" in answer for answer in answers) == 3

    def test_captures_once(self, api: Api, held: Checkout) -> None:
        answers = self.at_once(api, f"checkouts/{held.pk}/capture", {})
        for answer in answers:
            if answer.status_code != 200:
                refused(answer, 409, "idempotency_in_progress")
        assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
        assert Operation.objects.filter(kind="capture").count() == 1


def uuids(answer: Any) -> list[str]:
    return [shown["checkout_uuid"] for shown in answer.json()["data"]["checkouts"]]


class TestList:
    @pytest.mark.rule("list.pages")
    def test_pages_without_repeat_or_gap_while_rows_are_added(self, api: Api) -> None:
        made = [factories.checkout(api.merchant) for _ in range(7)]
        Checkout.objects.filter(pk__in=[row.pk for row in made[2:5]]).update(created_at=made[3].created_at)
        seen, cursor = [], ""
        while True:
            page = api.get(f"checkouts?limit=2{cursor}")
            seen += uuids(page)
            factories.checkout(api.merchant)
            following = page.json()["data"]["next_cursor"]
            if following is None:
                break
            cursor = f"&cursor={following}"
        assert seen == [str(row.pk) for row in reversed(made)]

    @pytest.mark.rule("list.cursor")
    def test_is_of_its_merchant_alone(self, api: Api, rival_api: Api, unpaid: Checkout) -> None:
        theirs = factories.checkout(rival_api.merchant)
        assert uuids(api.get("checkouts")) == [str(unpaid.pk)]
        assert uuids(rival_api.get("checkouts")) == [str(theirs.pk)]
        assert set(api.get("checkouts").json()["data"]) == {"checkouts", "next_cursor"}

    @pytest.mark.rule("list.filters")
    def test_filters_by_status_order_and_times(self, api: Api, pay: Callable[..., Checkout]) -> None:
        old, paid, new = (factories.checkout(api.merchant, merchant_order_id=name) for name in "abc")
        pay(paid)
        day = timedelta(days=1)
        Checkout.objects.filter(pk=old.pk).update(
            created_at=old.created_at - day, updated_at=old.created_at - day
        )
        noon = (timezone.now() - day / 2).strftime("%Y-%m-%dT%H:%M:%SZ")
        for query, expected in {
            "status=created": [new, old],
            "status=authorized": [paid],
            "status=refunded": [],
            "merchant_order_id=a": [old],
            "merchant_order_id=unknown": [],
            f"created_after={noon}": [new, paid],
            f"created_before={noon}": [old],
            f"updated_after={noon}": [new, paid],
            f"created_after={noon}&status=created&merchant_order_id=c": [new],
            "": [new, paid, old],
        }.items():
            assert uuids(api.get(f"checkouts?{query}")) == [str(row.pk) for row in expected], query

    @pytest.mark.rule("list.pages")
    def test_holds_fifty_unless_told_and_two_hundred_at_most(self, api: Api) -> None:
        for _ in range(51):
            factories.checkout(api.merchant)
        assert len(uuids(api.get("checkouts"))) == 50
        assert len(uuids(api.get("checkouts?limit=200"))) == 51

    @pytest.mark.rule("list.filters")
    @pytest.mark.parametrize(
        ("param", "value"),
        [
            *(("limit", value) for value in ("0", "-1", "201", "abc", "1.5", "", "9223372036854775808")),
            ("limit", "1&limit=1"),
            *(("status", value) for value in ("paid", "Created", "", "created,voided", "%00")),
            *(
                ("created_after", value)
                for value in ("yesterday", "2026-06-01", "2026-06-01T00:00:00", "0", "")
            ),
            ("created_before", "9999-12-31T23:59:59-14:00"),
            ("updated_after", "2026-13-01T00:00:00Z"),
            ("merchant_order_id", "%00"),
            ("merchant_order_id", "x" * 256),
        ],
    )
    def test_refuses_a_query_that_makes_no_sense(self, api: Api, param: str, value: str) -> None:
        refused(api.get(f"checkouts?{param}={value}"), 422, "validation_failed", param)

    @pytest.mark.rule("list.cursor")
    @pytest.mark.parametrize("text", ["", "garbage", "%00", "x" * 10_000])
    def test_refuses_a_cursor_that_is_not_its_own(self, api: Api, text: str) -> None:
        refused(api.get(f"checkouts?cursor={text}"), 400, "invalid_cursor")


# BEGIN and COMMIT do not count, nor do the sandbox bank's own tables: a real provider has none.
NOT_COUNTED = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|.*\bbank_", re.DOTALL)


@contextmanager
def at_most(count: int) -> Iterator[list[str]]:
    """Fail if the block needs more statements; yields them."""
    statements: list[str] = []
    with CaptureQueriesContext(connection) as context:
        yield statements
    statements += [row["sql"] for row in context if not NOT_COUNTED.match(row["sql"])]
    assert len(statements) <= count, "\n".join(statements)


@pytest.mark.rule("api.statements")
class TestStatements:
    @pytest.fixture(autouse=True)
    def _key_in_use(self, api: Api) -> None:
        """A key's first call in a minute also notes that it is used: one statement more."""
        api.get("checkouts")

    def test_of_a_read_are_three_at_most(self, api: Api, at: Bring) -> None:
        checkout = at("refunded")
        with at_most(3) as statements:
            read(api, checkout)
        assert sum("oauth2_provider_accesstoken" in statement for statement in statements) == 1

    def test_of_a_list_do_not_grow_with_its_rows(self, api: Api) -> None:
        for _ in range(20):
            factories.checkout(api.merchant)
        with at_most(3):
            assert len(uuids(api.get("checkouts"))) == 20

    @pytest.mark.parametrize("items", [1, 5, 100])
    def test_of_a_creation_are_eight_at_most(self, api: Api, items: int) -> None:
        lines = [factories.item(quantity=1, unit_price=90) for _ in range(items)]
        with at_most(8):
            assert api.post("checkouts", order(items=lines, total_amount=90 * items)).status_code == 201

    def test_of_a_creation_with_a_key_are_eight_at_most(self, api: Api) -> None:
        with at_most(8):
            assert api.post("checkouts", order(), idempotency_key="k").status_code == 201

    @pytest.mark.parametrize("key", [{}, {"idempotency_key": "k"}], ids=["plain", "with a key"])
    def test_of_a_capture_are_sixteen_at_most(self, api: Api, held: Checkout, key: dict[str, str]) -> None:
        Subscription.objects.create(merchant=api.merchant, url="http://127.0.0.1:9/", event_types=["*"])
        with at_most(16):
            assert api.post(f"checkouts/{held.pk}/capture", **key).status_code == 200


def test_bodies_are_compact_utf_8_json(api: Api) -> None:
    made = api.post("checkouts", order(merchant_order_id="Größe 👟")).json()["data"]
    answer = api.get(f"checkouts/{made['checkout_uuid']}")
    assert answer["Content-Type"] == "application/json" and "Größe 👟" in answer.content.decode()
    assert answer.content == json.dumps(answer.json(), ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.rule("read.refunds")
class TestRefundsThatFailAgainAndAgain:
    def test_are_read_as_the_newest_hundred(self, api: Api, captured: Checkout) -> None:
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
