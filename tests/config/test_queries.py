"""Each API call refuses unknown query parameters, and treats a missing body as an empty object."""

from typing import Any
from uuid import UUID

import pytest
from django.urls import get_resolver

from checkout.models import ApiCall, Checkout
from config.lib.api.view import ApiView
from config.openapi import schema
from tests.config import described
from tests.conftest import Api
from tests.factories import order
from tests.refusals import nothing_moves, refused

CALLS = sorted(described.routes(get_resolver().url_patterns))
POSTS = [path for path, method in CALLS if method == "post"]
HOOK = {"url": "http://127.0.0.1:9/hook", "event_types": ["*"]}


def call(
    api: Api, method: str, path: str, body: bytes = b"{}", content_type: str = "application/json"
) -> Any:
    return api.client.generic(method.upper(), path, body, content_type, headers=api.headers({}))


class TestQuery:
    @pytest.mark.rule("api.query")
    @pytest.mark.parametrize(("path", "method"), CALLS)
    def test_with_an_unknown_parameter_is_refused(
        self, api: Api, held: Checkout, path: str, method: str
    ) -> None:
        with nothing_moves():
            for query in ("colour=green", "colour=", "colour=a&colour=b", "%00=%ff", "status[]=x"):
                name = {"%00=%ff": "\x00"}.get(query, query.partition("=")[0])
                answer = call(api, method, f"{path.format(checkout_uuid=held.pk)}?{query}")
                message = refused(answer, 422, "validation_failed", name)["message"]
                assert "Is not a parameter of this call." in message or "Must be sent only once." in message

    @pytest.mark.rule("api.query")
    @pytest.mark.parametrize(("path", "method"), CALLS)
    @pytest.mark.parametrize("field", ["colour=green", "limit=1", ""], ids=["unknown", "known", "empty"])
    def test_with_hundreds_of_parameters_is_refused_without_naming_one(
        self, api: Api, held: Checkout, path: str, method: str, field: str
    ) -> None:
        with nothing_moves():
            answer = call(api, method, f"{path.format(checkout_uuid=held.pk)}?{'&'.join([field] * 251)}")
            message = refused(answer, 422, "validation_failed", None)["message"]
        assert message.startswith("The URL has too many query parameters. The call accepts ")

    @pytest.mark.rule("api.query", "idempotency.kept")
    def test_with_an_unknown_parameter_leaves_the_idempotency_key_free(self, api: Api) -> None:
        for _ in range(2):
            answer = api.post("checkouts?colour=green", order(), Idempotency_Key="k")
            refused(answer, 422, "validation_failed", "colour")
            assert api.post("checkouts", order(), Idempotency_Key="k").status_code == 201
        assert Checkout.objects.count() == 1

    def test_of_a_method_that_the_path_lacks_does_not_change_the_refusal(self, api: Api) -> None:
        answer = call(api, "TRACE", "/api/merchant/v1/events?colour=green")
        refused(answer, 405, "method_not_allowed")

    def test_error_lists_the_accepted_parameters(self, api: Api) -> None:
        error = refused(api.get("webhooks/deliveries?page=2"), 422, "validation_failed", "page")
        assert "The call accepts limit, cursor, event_type, event_id, status." in error["message"]

    @pytest.mark.rule("api.all_fields")
    def test_with_several_errors_reports_each(self, api: Api) -> None:
        query = "limit=0&colour=green&status=paid&sort=updated_at&sort=no&created_after=2026-06-01T00:00:00Z"
        details = refused(api.get(f"checkouts?{query}"), 422, "validation_failed", "limit")["details"]
        assert {row["param"]: row["message"].partition(".")[0] for row in details} == {
            "limit": "Must be between 1 and 200",
            "status": "Must be one of created, authorized, captured, voided, expired, refunding, refunded",
            "colour": "Is not a parameter of this call",
            "sort": "Must be sent only once",
        }

    def test_with_a_known_name_is_accepted(self, api: Api) -> None:
        api.post("webhooks/subscription", HOOK)
        for value in ("true", "false"):
            assert api.post(f"webhooks/secret/rotate?revoke_previous={value}").status_code == 200
        refused(api.post("webhooks/secret/rotate?revoke=true"), 422, "validation_failed", "revoke")

    def test_of_a_post_is_validated_and_recorded_with_the_call(self, api: Api, held: Checkout) -> None:
        path = f"checkouts/{held.pk}/capture?dry_run=true"
        refused(api.post(path), 422, "validation_failed", "dry_run")
        call = ApiCall.objects.get()
        assert (call.checkout_uuid, call.status, call.error_code) == (held.pk, 422, "validation_failed")

    def test_is_validated_after_authentication(self, api: Api) -> None:
        answer: Any = api.client.get("/api/merchant/v1/checkouts?colour=green")
        refused(answer, 401, "missing_token")

    def test_is_the_same_in_the_view_and_in_the_schema(self) -> None:
        for (view, method), endpoint in schema.ENDPOINTS.items():
            assert issubclass(view, ApiView)
            assert view.queries.get(method) is endpoint.query


@pytest.mark.rule("api.body")
class TestNoBody:
    @pytest.mark.parametrize("path", POSTS)
    @pytest.mark.parametrize(
        "content_type",
        ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""],
    )
    def test_is_treated_as_an_empty_object(self, api: Api, path: str, content_type: str) -> None:
        nobodys = path.format(checkout_uuid=UUID(int=0))
        empty, given = (call(api, "post", nobodys, *sent) for sent in ((b"", content_type), (b"{}",)))
        assert empty.status_code == given.status_code not in (400, 415)
        if empty.status_code >= 400:
            assert empty.json()["error"]["message"] == given.json()["error"]["message"]
