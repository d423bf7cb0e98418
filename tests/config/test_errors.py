"""The error table lists every code with its status. Error responses contain no text from a framework."""

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.utils.functional import Promise
from rest_framework.exceptions import Throttled
from rest_framework.serializers import Serializer

from checkout import authorizations, captures, current_checkouts, states
from checkout.api import idempotency
from checkout.models import Checkout
from config import errors
from config.lib.bulkhead import Busy
from config.openapi import schema
from hosted_page.opt_in.consent import TooManyTicks
from payments import operator_stops
from payments.provider import ProviderUnreachable
from tests import factories
from tests.config import described, story
from tests.conftest import Api
from tests.factories import make_late
from tests.outages import InDoubt
from tests.refusals import nothing_moves, refused
from webhooks.url_check import TooManyChecks

JSON = "application/json"
# Exceptions for the codes that a test cannot cause by a call. The other codes, except internal_error and
# request_timeout, occur in the examples of tests/config/story.py.
RAISED: dict[str, list[Exception]] = {
    "operation_in_progress": [states.OperationInProgress()],
    "idempotency_in_progress": [idempotency.IdempotencyInProgress()],
    "rate_limited": [Throttled(), TooManyChecks(3)],
    "provider_error": [captures.ProviderRefused("expired_authorization")],
    "service_unavailable": [
        Busy(),
        ProviderUnreachable(),
        OperationalError("gone"),
        operator_stops.AllStopped(),
    ],
    "outcome_unknown": [captures.OutcomeUnknown()],
    "not_payable": [authorizations.NotTheLead()],
    "too_many_ticks": [TooManyTicks()],
}
WRONG: list[Any] = [None, True, 1, -1.5, "", "x", "x" * 3000, "\x00", [], [None], [{}], {}, {"x": {}}]
# Phrases that occur in error texts of frameworks and libraries, but never in ours.
FOREIGN = (
    *("This field", "Ensure", "valid choice", "valid boolean", "Invalid data", "Expected a", "No data provided"),
    *("Not found.", "Method \"", "Unsupported media", "Malformed", "parse error", "Authentication credentials"),
    *("not have permission", "Request was throttled", "server error", "CSRF", "<h1", "Traceback", "None", "django"),
    *("Missing", "Invalid client", "Mismatching", "not supported by", "Bad Request", "Invalid HTTP_HOST"),
)  # fmt: skip


class TestTable:
    @pytest.mark.rule("api.error_codes")
    def test_every_code_is_answered_with_its_row(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        told = set(story.Story(api).send_all_calls()["errors"])
        for code, raised in RAISED.items():
            for error in raised:
                monkeypatch.setattr(current_checkouts, "refresh_late", functools.partial(_fail, error))
                row, answer = errors.ERRORS[code], api.get("checkouts")
                refused(answer, row.status, code)
                assert ("Retry-After" in answer) == (row.retry_after is not None)
        assert told | set(RAISED) | {"internal_error", "request_timeout"} == set(errors.ERRORS)

    @pytest.mark.rule("api.error_codes")
    def test_an_unexpected_exception_is_a_500_without_details(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            current_checkouts, "refresh_late", functools.partial(_fail, RuntimeError("secret words"))
        )
        api.client.raise_request_exception = False
        error = refused(api.get("checkouts"), 500, "internal_error")
        assert "secret" not in str(error)

    def test_every_code_has_a_row_in_the_table(self) -> None:
        assert set(errors.CODES) <= set(errors.ERRORS)

    def test_every_message_says_what_to_do_in_a_sentence(self) -> None:
        for code, row in errors.ERRORS.items():
            assert row.message.endswith(".") and row.message[0].isupper(), code
            assert _foreign(row.message) == [], code


def _fail(error: Exception, *_: Any) -> Any:
    raise error


class TestHeader:
    @pytest.mark.rule("api.invalid_header")
    @pytest.mark.parametrize("key", ["", " ", "x" * 256, "schlüssel", "a\tb", "\x00"])
    def test_that_is_malformed_is_named(self, api: Api, held: Checkout, key: str) -> None:
        with nothing_moves():
            for path in ("checkouts", f"checkouts/{held.pk}/capture"):
                answer = api.post(path, {}, Idempotency_Key=key)
                error = refused(answer, 400, "invalid_header", "Idempotency-Key")
                assert error["message"].startswith("Idempotency-Key: Must have 1 to 255 printable ASCII")

    @pytest.mark.rule("api.invalid_header")
    def test_with_another_host_is_named(self, api: Api) -> None:
        error = refused(api.get("checkouts", host="evil.example"), 400, "invalid_header", "Host")
        assert error["message"].startswith("Host: Must be the service's host")


@pytest.mark.rule("api.conflict")
class TestConflict:
    def test_with_an_open_operation_includes_the_checkouts_status(
        self, api: Api, unpaid: Checkout, in_doubt: InDoubt
    ) -> None:
        in_doubt("capture")
        path = f"checkouts/{unpaid.pk}"
        told = refused(api.post(f"{path}/cancel"), 409, "operation_in_progress")["details"]
        assert told == [_status_and_actions(api, unpaid)] and told[0]["status"] == "authorized"
        make_late(Checkout.objects.get(pk=unpaid.pk))
        late = refused(api.post(f"{path}/cancel"), 409, "operation_in_progress")["details"]
        assert late == [{"status": "authorized", "available_actions": []}]

    @pytest.mark.parametrize("is_all", [False, True], ids=["the merchant", "all"])
    def test_does_not_offer_a_capture_that_a_stop_refuses(
        self, api: Api, held: Checkout, is_all: bool
    ) -> None:
        factories.stop(None if is_all else api.merchant)
        answer = api.post(f"checkouts/{held.pk}/refund", {"merchant_refund_ref": "r-1"})
        told = refused(answer, 409, "not_refundable")["details"]
        assert (
            told
            == [_status_and_actions(api, held)]
            == [{"status": "authorized", "available_actions": ["cancel"]}]
        )

    def test_offers_no_action_after_a_passed_deadline(self, api: Api, unpaid: Checkout) -> None:
        make_late(unpaid)
        (told,) = refused(_pay_share(api, unpaid), 409, "share_not_open")["details"]
        assert told["available_actions"] == _status_and_actions(api, unpaid)["available_actions"] == []

    def test_of_a_share_includes_the_checkouts_status(self, api: Api, captured: Checkout) -> None:
        told = refused(_pay_share(api, captured), 409, "share_not_open")["details"]
        assert told == [_status_and_actions(api, captured)]


def _pay_share(api: Api, checkout: Checkout) -> Any:
    path = f"/api/sandbox/v1/checkouts/{checkout.pk}/pay-share"
    return api.client.post(path, {}, content_type=JSON, headers=api.headers({}))


def _status_and_actions(api: Api, checkout: Checkout) -> dict[str, Any]:
    shown = api.get(f"checkouts/{checkout.pk}").json()["data"]
    return {name: shown[name] for name in ("status", "available_actions")}


class TestScope:
    @pytest.mark.rule("token.scope_needed")
    def test_that_is_missing_is_named(self, api: Api, held: Checkout) -> None:
        api.token = api.get_token(scope="checkouts:read")
        error = refused(api.post(f"checkouts/{held.pk}/refund", {}), 403, "insufficient_scope")
        assert "lacks the scope refunds:write." in error["message"]


class TestPlusSign:
    @pytest.mark.rule("api.plus")
    @pytest.mark.parametrize("name", ["created_after", "created_before", "updated_after"])
    @pytest.mark.parametrize("offset", ["+02:00", "+0200"])
    def test_in_a_query_is_explained_in_the_error(self, api: Api, name: str, offset: str) -> None:
        at = f"2026-06-01T18:30:00.000{offset}"
        error = refused(api.get(f"checkouts?{name}={at}"), 422, "validation_failed", name)
        assert "Write it as %2B" in error["message"]
        assert api.get(f"checkouts?{name}={at.replace('+', '%2B')}").status_code == 200

    def test_is_not_mentioned_in_other_errors_of_times(self, api: Api) -> None:
        for at in ("soon", "2026-06-01 18:30", "2026-06-01T18:30:00", "2026-06-01T18:30:00 UTC"):
            answer = api.client.get(
                "/api/merchant/v1/checkouts", {"created_after": at}, headers=api.headers({})
            )
            error = refused(answer, 422, "validation_failed", "created_after")
            assert "%2B" not in error["message"] and "with an offset" in error["message"]


class TestWords:
    @pytest.mark.parametrize("value", ["x", "", "x" * 300, "%00", "Created"])
    def test_of_a_choice_list_its_values(self, api: Api, value: str) -> None:
        error = refused(api.get(f"checkouts?status={value}"), 422, "validation_failed", "status")
        assert error["message"].startswith("status: Must be one of created, authorized, ")
        assert refused(api.get(f"checkouts?sort={value}"), 422, "validation_failed")["message"] == (
            "sort: Must be updated_at."
        )

    @pytest.mark.rule("api.own_words")
    def test_of_every_field_are_our_own_texts(self) -> None:
        for serializer in _serializers():
            for field in _fields(serializer()):
                theirs = {
                    kind: words for kind, words in field.error_messages.items() if isinstance(words, Promise)
                }
                assert theirs == {}, f"{serializer.__name__}.{field.field_name}"

    @pytest.mark.rule("api.own_words")
    def test_of_every_refusal_are_our_own_texts(self, api: Api, held: Checkout) -> None:
        """The test sends each call with wrong methods, content types, bodies, queries and headers."""
        seen: set[str] = set()
        for answer in _attacks(api, held):
            assert answer.status_code != 500, answer.request
            if answer.status_code >= 400:
                seen |= set(_sentences(answer))
        assert len(seen) > 40
        assert {words: found for words in seen if (found := _foreign(words))} == {}
        assert [words for words in seen if not words.endswith(".")] == []


def _serializers() -> Iterator[type[Serializer[Any]]]:
    for endpoint in schema.ENDPOINTS.values():
        yield from (kind for kind in (endpoint.body, endpoint.query) if kind is not None)


def _fields(field: Any) -> Iterator[Any]:
    yield field
    if isinstance(field, Serializer):
        for inner in field.fields.values():
            yield from _fields(inner)
    elif child := getattr(field, "child", None):
        yield from _fields(child)


def _foreign(words: str) -> list[str]:
    return [phrase for phrase in FOREIGN if phrase in words]


def _sentences(answer: Any) -> Iterator[str]:
    """Yield every sentence of an error response."""
    assert answer["Content-Type"] == JSON, answer.content[:300]
    body = answer.json()
    if isinstance(body["error"], str):
        yield body["error_description"]
        return
    yield body["error"]["message"]
    yield from (row["message"] for row in body["error"]["details"] if "message" in row)


def _attacks(api: Api, held: Checkout) -> Iterator[Any]:
    document = described.document()
    for path, method, operation in described.operations(document):
        ask = functools.partial(_ask, api, path.replace("{checkout_uuid}", str(held.pk)))
        yield from _wrong_methods(ask)
        if method == "post":
            yield from _wrong_bodies(ask, document, operation)
        for name in [
            *(found["name"] for found in operation["parameters"] if found.get("in") == "query"),
            "x",
        ]:
            for value in ("", "x", "-1", "1.5", "%00", "x" * 3000, "2026-06-01T18:30:00+02:00"):
                yield ask(method.upper(), query=f"?{name}={value}")
        for name, value in (
            ("Authorization", ""),
            ("Authorization", "Bearer x"),
            ("Idempotency-Key", "\x00"),
        ):
            yield ask(method.upper(), headers={name: value})


def _ask(api: Api, path: str, method: str, body: bytes = b"", query: str = "", **more: Any) -> Any:
    """Send a request with a body and a query string.

    `more` can have `kind`, which is the content type, and `headers`.
    """
    sent, kind = api.headers(more.get("headers", {})), more.get("kind", JSON)
    return api.client.generic(method, path + query, body, kind, headers=sent)


def _wrong_methods(ask: Callable[..., Any]) -> Iterator[Any]:
    for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"):
        answer = ask(method)
        if method != "HEAD" and answer.status_code == 405:
            yield answer


def _wrong_bodies(
    ask: Callable[..., Any], document: dict[str, Any], operation: dict[str, Any]
) -> Iterator[Any]:
    for kind in ("", "text/plain", "multipart/form-data; boundary=x", "application/xml", "a/b/c"):
        yield ask("POST", b"x", kind=kind)
    for raw in (b"{", b"[]", b"null", b'"x"', b"\xff", b'{"a":1,"a":2}', b" " * (256 * 1024 + 1)):
        yield ask("POST", raw)
    sample = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
    for body in _wrongly_filled(document, sample.get("schema", {}), sample.get("example", {})):
        yield ask("POST", json.dumps(body).encode())


def _wrongly_filled(document: dict[str, Any], part: dict[str, Any], example: Any) -> Iterator[dict[str, Any]]:
    """Yield copies of the example. In each copy, one field is missing or wrong. The field can be nested."""
    name = part.get("$ref", "").rpartition("/")[2]
    known = document["components"]["schemas"].get(name, part).get("properties", {})
    for field, kind in known.items():
        yield {other: value for other, value in example.items() if other != field}
        yield from (example | {field: value} for value in WRONG)
        if "items" in kind and "$ref" in kind["items"]:
            first = example.get(field, [{}])[0]
            for inner in _wrongly_filled(document, kind["items"], first):
                yield example | {field: [inner]}


def test_a_refusal_of_nested_fields_is_flat() -> None:
    detail = {"items": {2: {"currency": ["Must be GBP."]}}, "": ["Must be an object."]}
    assert errors.flatten(detail) == [
        {"param": "items[2].currency", "message": "Must be GBP."},
        {"param": None, "message": "Must be an object."},
    ]
