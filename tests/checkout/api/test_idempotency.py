import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import cancellations, captures, refunds, tasks
from checkout.models import CALLS, ApiCall, Checkout, IdempotencyKey, Refund
from config.errors import ERRORS
from config.lib import clock
from config.lib.bulkhead import Busy
from config.lib.database import partitions
from payments import operations
from payments.models import Operation, Payment
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE, order
from tests.refusals import nothing_moves, refused

pytestmark = pytest.mark.django_db
Bring = Callable[[str], Checkout]


@pytest.mark.django_db
class TestTheRecord:
    def test_has_a_row_for_each_post_including_refusals(self, api: Api) -> None:
        order = factories.order()
        api.post("checkouts", order, Idempotency_Key="k")
        api.post("checkouts", order | {"currency": "EUR"}, Idempotency_Key="k")
        api.post("checkouts", order, Idempotency_Key=" ")
        api.post("checkouts", {})
        assert list(ApiCall.objects.order_by("created_at").values_list("status", "error_code")) == [
            (201, ""),
            (422, "idempotency_key_reused"),
            (400, "invalid_header"),
            (422, "validation_failed"),
        ]
        assert [key.key for key in IdempotencyKey.objects.all()] == ["k"]

    def test_has_one_row_for_a_post_that_is_refused_before_it_is_carried_out(self, api: Api) -> None:
        api.token = api.get_token(scope="checkouts:read")
        refused(api.post("checkouts", order()), 403, "insufficient_scope")
        assert ApiCall.objects.get().error_code == "insufficient_scope"

    def test_names_the_checkout_that_was_created(self, api: Api) -> None:
        made = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        api.post(f"checkouts/{made}/capture")
        assert [str(call.checkout_uuid) for call in ApiCall.objects.all()] == [made, made]


@pytest.mark.rule("secret.retention")
@pytest.mark.django_db
class TestTheRetention:
    def called(self, api: Api, days: float) -> UUID:
        """Record an API call that is some days old, and return its id."""
        at = clock.now() - timedelta(days=days)
        api.post("checkouts", {})
        (call,) = ApiCall.objects.filter(created_at__gt=clock.now() - timedelta(hours=1))
        ApiCall.objects.filter(pk=call.pk).delete()
        call.pk = UUID(int=clock.first_id(at).int | call.pk.int & (1 << 76) - 1)
        call.created_at = at
        call.save(force_insert=True)
        return call.pk

    @pytest.mark.parametrize("has_partitions", [True, False])
    def test_drops_calls_older_than_the_retention_period(
        self, api: Api, settings: Settings, has_partitions: bool
    ) -> None:
        today = clock.now().date()
        if has_partitions:
            partitions.make(CALLS, today - timedelta(days=100), today)
        old, young = self.called(api, 92.1), self.called(api, 89.9)
        tasks.delete_old_calls()
        assert [call.pk for call in ApiCall.objects.all()] == [young]
        settings.API_CALL_RETENTION = timedelta(days=30)
        tasks.delete_old_calls()
        assert not ApiCall.objects.exists() and old != young

    def test_creates_partitions_in_advance(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"DROP TABLE {CALLS.named(CALLS.steps(*[clock.now().date() + timedelta(5)] * 2)[0])}"
            )
        tasks.make_partitions()
        assert partitions.days_ahead(CALLS, clock.now().date()) >= 7


class TestRepeats:
    @pytest.mark.rule("create.order_repeats")
    def test_of_an_order_id_create_new_checkouts(self, api: Api) -> None:
        first, second = (api.post("checkouts", order()).json()["data"] for _ in range(2))
        assert first["checkout_uuid"] != second["checkout_uuid"]

    @pytest.mark.rule("idempotency.key")
    @pytest.mark.parametrize(
        "key", ["", " ", "a\x00b", "a\tb", "ключ", "k" * 256], ids=lambda key: repr(key)[:9]
    )
    def test_under_a_malformed_key_are_refused(self, api: Api, key: str) -> None:
        with nothing_moves():
            refused(api.post("checkouts", order(), idempotency_key=key), 400, "invalid_header")

    @pytest.mark.parametrize("key", ["k", "a b", "~!#$%&'*+-.^_`|", "k" * 255])
    def test_under_any_printable_key_are_replayed(self, api: Api, key: str) -> None:
        first, second = (api.post("checkouts", order(), idempotency_key=key) for _ in range(2))
        assert first.status_code == 201 and first.content == second.content
        assert Checkout.objects.count() == 1

    def test_under_a_key_of_another_body_are_refused(self, api: Api) -> None:
        api.post("checkouts", order(), idempotency_key="k")
        spaced = json.dumps(order(), indent=1).encode()
        for body in (order(merchant_order_id="B"), spaced, b"{"):
            with nothing_moves():
                answer = api.post("checkouts", body, idempotency_key="k")
                refused(answer, 422, "idempotency_key_reused")

    @pytest.mark.rule("operator.stop")
    def test_of_a_suspended_merchant_are_refused(self, api: Api) -> None:
        factories.stop(api.merchant)
        with nothing_moves():
            refused(api.post("checkouts", order()), 403, "merchant_suspended")


def age(**ago: float) -> None:
    """Make every key this old. The keyword arguments are those of `timedelta`."""
    at = timezone.now() - timedelta(**ago)
    for key in IdempotencyKey.objects.all():
        made = UUID(int=clock.first_id(at).int | key.pk.int & (1 << 80) - 1)
        IdempotencyKey.objects.filter(pk=key.pk).update(id=made, created_at=at)


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
    def test_in_use_is_a_conflict_until_another_call_takes_it_over(
        self, api: Api, held: Checkout, verb: str
    ) -> None:
        path = f"checkouts/{held.pk}/{verb}"
        first = api.post(path, idempotency_key="k")
        # Simulate that the process died before it stored the response.
        IdempotencyKey.objects.update(status=None, body=None)
        age(seconds=89)
        with nothing_moves():
            waiting = api.post(path, idempotency_key="k")
            error = refused(waiting, 409, "idempotency_in_progress")
            refused(api.post(path, {"x": 1}, idempotency_key="k"), 422, "idempotency_key_reused")
        assert waiting["Retry-After"] == "1"
        assert error["details"][0]["status"] == {"capture": "captured", "cancel": "voided"}[verb]
        age(seconds=90)
        with nothing_moves():
            refused(api.post(path, {"x": 1}, idempotency_key="k"), 422, "idempotency_key_reused")
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
    def test_is_free_again_after_an_invalid_request(
        self, api: Api, body: bytes, headers: dict[str, str], code: str
    ) -> None:
        content_type = headers.get("content-type", "application/json")
        given = api.headers({"idempotency-key": "k"} | headers)
        answer = api.client.generic("POST", "/api/merchant/v1/checkouts", body, content_type, headers=given)
        assert answer.json()["error"]["code"] == code
        assert not IdempotencyKey.objects.exists()
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
    def test_is_free_again_after_a_state_conflict(
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

    def test_of_an_unknown_checkout_is_free_again(self, api: Api, unpaid: Checkout) -> None:
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
    def test_is_free_again_after_a_provider_failure(
        self, api: Api, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = f"checkouts/{held.pk}/cancel"
        for error, status, code in (
            (captures.ProviderRefused("card_declined"), 502, "provider_error"),
            (Busy(), 503, "service_unavailable"),
            (captures.OutcomeUnknown(), 504, "outcome_unknown"),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(cancellations, "cancel", Mock(side_effect=error))
                refused(api.post(path, idempotency_key="k"), status, code)
        assert api.post(path, idempotency_key="k").status_code == 200

    @pytest.mark.rule("idempotency.key")
    def test_can_be_used_by_each_merchant_separately(self, api: Api, rival_api: Api) -> None:
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

    def test_is_deleted_by_the_pump_after_a_day(self, api: Api) -> None:
        api.post("checkouts", order(), idempotency_key="k")
        age(hours=23.9)
        tasks.delete_idempotency_keys()
        assert IdempotencyKey.objects.get().key == "k"
        age(hours=24.1)
        tasks.delete_idempotency_keys()
        assert not IdempotencyKey.objects.exists() and ApiCall.objects.get().checkout_uuid is not None

    @pytest.mark.rule("idempotency.in_flight")
    def test_that_was_taken_over_keeps_the_later_response(
        self, api: Api, held: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After 90 seconds, a second call takes over the key. The first call does not overwrite its response."""
        path, capture = f"checkouts/{held.pk}/capture", captures.capture
        answers = []

        def slowly(*asked: Any, **more: Any) -> Any:
            monkeypatch.setattr(captures, "capture", capture)
            age(seconds=91)
            answers.append(api.post(path, idempotency_key="k"))
            return capture(*asked, **more)

        monkeypatch.setattr(captures, "capture", slowly)
        answers.append(api.post(path, idempotency_key="k"))
        assert {answer.status_code for answer in answers} == {200}
        assert api.post(path, idempotency_key="k").content == answers[0].content
        assert ApiCall.objects.count() == 2 and IdempotencyKey.objects.count() == 1

    def test_is_optional(self, api: Api) -> None:
        assert api.post("checkouts", order()).status_code == 201
        assert not IdempotencyKey.objects.exists()

    @pytest.mark.rule("idempotency.elsewhere")
    def test_is_ignored_by_calls_that_are_not_replayed(self, api: Api, unpaid: Checkout) -> None:
        body = {"url": "http://127.0.0.1:9/", "event_types": ["*"]}
        assert api.post("webhooks/subscription", body, idempotency_key="k").status_code == 201
        secrets = {api.post("webhooks/secret/rotate", idempotency_key="k").content for _ in range(2)}
        assert len(secrets) == 2
        assert api.get("checkouts", idempotency_key="ключ").status_code == 200


@pytest.mark.rule("idempotency.at_once")
@pytest.mark.django_db(transaction=True)
class TestSameKeyAtOnce:
    """Simultaneous calls with the same key, on separate connections. A database row decides which call runs."""

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
