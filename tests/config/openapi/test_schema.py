"""The API document agrees with the API: its paths, error codes, examples and real responses."""

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema
from jsonschema_rs import meta as metaschema

from checkout.api.responses import CheckoutOut
from checkout.models import Checkout
from checkout.states import Status
from config import errors
from config.openapi import examples, schema
from portal.developer_docs import page
from portal.oauth import metadata
from tests.config import described, story
from tests.conftest import Api
from tests.factories import make_late, order

RECORD = "RECORD_EXAMPLES"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return described.document()


class TestDocument:
    @pytest.mark.rule("api.document")
    def test_is_valid_openapi(self, document: dict[str, Any]) -> None:
        assert document["openapi"].startswith("3.1")
        validate_schema(document)
        for part in document["components"]["schemas"].values():
            metaschema.validate(part)

    def test_is_generated_without_a_warning(self) -> None:
        GENERATOR_STATS.reset()
        schema.document.cache_clear()
        schema.document()
        assert not GENERATOR_STATS

    def test_is_generated_once_for_simultaneous_requests(self) -> None:
        for made in (schema.document, schema._document_body, page._page_context):
            made.cache_clear()
        paths, statuses = ["/api/schema", "/api/docs"] * 12, []
        together = threading.Barrier(len(paths))

        def ask(path: str) -> None:
            client = Client(raise_request_exception=False)
            together.wait()
            statuses.append(client.get(path).status_code)

        threads = [threading.Thread(target=ask, args=[path]) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * len(paths)

    @pytest.mark.rule("api.document")
    def test_has_every_address_of_the_api_and_no_other(self, document: dict[str, Any]) -> None:
        told = {(path, method) for path, method, _ in described.operations(document)}
        oauth = {("/oauth/token", "post"), ("/oauth/revoke", "post"), (metadata.PATH, "get")}
        assert told == {*described.routes(get_resolver().url_patterns), *oauth}

    @pytest.mark.rule("api.error_codes")
    def test_names_every_error_code(self, document: dict[str, Any]) -> None:
        named = document["components"]["schemas"]["ErrorBody"]["properties"]["code"]
        assert named["x-known-values"] == list(errors.ERRORS)
        assert set(document["components"]["examples"]) == set(errors.ERRORS) - {
            "not_found",
            "method_not_allowed",
        }

    @pytest.mark.rule("api.error_codes")
    def test_answers_each_code_with_its_own_status(self, document: dict[str, Any]) -> None:
        told = {
            (code, int(status))
            for _, _, operation in described.operations(document)
            for status, answer in operation["responses"].items()
            for code in answer.get("content", {}).get("application/json", {}).get("examples", {})
        }
        general = {"not_found", "method_not_allowed"}
        assert told == {(code, row.status) for code, row in errors.ERRORS.items() if code not in general}

    def test_names_the_scope_of_each_call(self, document: dict[str, Any]) -> None:
        scopes = {
            operation["operationId"]: operation["security"][0]["oauth2"]
            for _, _, operation in described.operations(document)
            if operation["security"]
        }
        assert scopes["refund_checkout"] == ["refunds:write"]
        assert scopes["list_delivery_attempts"] == ["webhooks:read"]
        assert {scope for found in scopes.values() for scope in found} == (
            settings.SCOPES.keys() - settings.PERSONAL_SCOPES
        )

    def test_has_a_sentence_on_every_field_and_parameter(self, document: dict[str, Any]) -> None:
        fields = {
            f"{name}.{field}": shown.get("description")
            for name, found in document["components"]["schemas"].items()
            for field, shown in found.get("properties", {}).items()
        }
        parameters = {
            f"{operation['operationId']} {parameter['name']}": parameter.get("description")
            for _, _, operation in described.operations(document)
            for parameter in operation["parameters"]
            if "name" in parameter
        }
        assert [name for name, text in (fields | parameters).items() if not text] == []

    def test_keeps_the_limits_of_the_fields(self, document: dict[str, Any]) -> None:
        fields = document["components"]["schemas"]["CheckoutRequest"]["properties"]
        assert (fields["total_amount"]["minimum"], fields["total_amount"]["maximum"]) == (1, 99_999_999)
        assert (fields["items"]["minItems"], fields["items"]["maxItems"]) == (1, 100)
        assert fields["merchant_order_id"]["maxLength"] == 255

    @pytest.mark.long
    def test_has_no_helpers_in_production(self) -> None:
        paths = described.of_production("print(json.dumps(schema.document()))")
        assert "/api/merchant/v1/checkouts" in paths
        assert "/api/sandbox/" not in paths


class TestExamples:
    @pytest.mark.rule("api.data", "api.document")
    def test_equal_the_current_responses_of_the_api(self, api: Api) -> None:
        fresh = story.as_text(story.Story(api).send_all_calls())
        if os.environ.get(RECORD):
            examples.PATH.write_text(fresh)
        kept = examples.PATH.read_text()
        assert story.comparable(kept) == story.comparable(fresh), (
            f"Record them anew: {RECORD}=1 pytest {__file__}"
        )

    def test_of_a_future_event_type_fit_the_feed(self, document: dict[str, Any]) -> None:
        """An event of a new type is valid in the feed's schema, even if the schema forbids unknown fields.

        An event of a current type is not valid in that schema if it has an unknown field.
        """
        listed = document["components"]["schemas"]["ListedEvent"]["properties"]["event"]
        told = examples.event_example("checkout.voided")
        judge = described.validator(document, listed, closed=True)
        judge.validate(told)
        judge.validate(told | {"type": "checkout.promised", "data": {"a": 1}})
        assert not judge.is_valid(told | {"data": told["data"] | {"a": 1}})

    def test_fit_their_schemas(self, document: dict[str, Any]) -> None:
        shown = list(_examples(document))
        assert len(shown) > 100
        for part, example in shown:
            described.validator(document, part, closed=True).validate(example)

    def test_every_call_and_event_has_one(self, document: dict[str, Any]) -> None:
        events = [methods["post"] for methods in document["webhooks"].values()]
        for operation in [*(found for _, _, found in described.operations(document)), *events]:
            bodies = [
                answer.get("content") for status, answer in operation["responses"].items() if status[0] == "2"
            ]
            media = [operation.get("requestBody", {}).get("content"), *bodies]
            missing = [found for found in media if found and "example" not in found["application/json"]]
            assert not missing, operation["operationId"]


def _examples(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each example of the document with its schema."""
    everything = [*document["paths"].values(), *document["webhooks"].values()]
    for operation in (operation for methods in everything for operation in methods.values()):
        for body in [operation.get("requestBody", {}), *operation["responses"].values()]:
            for media in body.get("content", {}).values():
                if "example" in media:
                    yield media["schema"], media["example"]
                for code in media.get("examples", {}):
                    yield media["schema"], document["components"]["examples"][code]["value"]


class TestAnswers:
    """Real responses are valid in the document's schemas, and contain only fields that the schemas define."""

    def fits(self, document: dict[str, Any], answer: Any, name: str) -> dict[str, Any]:
        part = described.response_schema(document, name, answer.status_code)
        described.validator(document, part, closed=True).validate(answer.json())
        found: dict[str, Any] = answer.json()
        return found

    def test_of_a_creation_fit_the_schema(self, document: dict[str, Any], api: Api) -> None:
        self.fits(document, api.post("checkouts", order()), "create_checkout")
        refused = self.fits(document, api.post("checkouts", order(total_amount=1)), "create_checkout")
        assert refused["error"]["code"] == "invalid_amount_arithmetic"

    @pytest.mark.rule("api.query")
    def test_to_an_unknown_parameter_fit_the_schema(
        self, document: dict[str, Any], api: Api, unpaid: Checkout
    ) -> None:
        for path, name in (
            ("checkouts", "list_checkouts"),
            (f"checkouts/{unpaid.pk}", "read_checkout"),
            ("webhooks/subscription", "read_subscription"),
        ):
            refused = self.fits(document, api.get(f"{path}?colour=red"), name)
            assert refused["error"]["param"] == "colour"

    def test_of_reads_in_every_status_fit_the_schema(
        self, document: dict[str, Any], api: Api, pay: Callable[..., Checkout], unpaid: Checkout
    ) -> None:
        seen = [self._read(document, api, unpaid)]
        held = pay(unpaid)
        seen.append(self._read(document, api, held))
        self.fits(document, api.post(f"checkouts/{held.pk}/capture", {}), "capture_checkout")
        seen.append(self._read(document, api, held))
        ref = {"merchant_refund_ref": "R-1"}
        assert api.post(f"checkouts/{held.pk}/refund", ref).status_code == 204
        seen.append(self._read(document, api, held))
        self.fits(document, self._advance(api, held), "sandbox_advance")
        seen.append(self._read(document, api, held))
        self.fits(document, api.post(f"checkouts/{held.pk}/refund", ref), "refund_checkout")
        assert seen == ["created", "authorized", "captured", "refunding", "refunded"]

    @pytest.mark.rule("api.document")
    @pytest.mark.parametrize("reason", ["", " "])
    def test_of_a_refund_with_a_blank_reason_fit_the_schema(
        self, document: dict[str, Any], api: Api, captured: Checkout, reason: str
    ) -> None:
        request = {"merchant_refund_ref": "R-1", "reason": reason}
        described.validator(document, document["components"]["schemas"]["RefundRequest"]).validate(request)
        assert api.post(f"checkouts/{captured.pk}/refund", request).status_code == 204
        assert self._read(document, api, captured) == "refunding"
        self.fits(document, api.get("checkouts"), "list_checkouts")

    def test_of_reads_of_ended_checkouts_fit_the_schema(
        self, document: dict[str, Any], api: Api, pay: Callable[..., Checkout], unpaid: Checkout
    ) -> None:
        late = Checkout.objects.get(pk=api.post("checkouts", order()).json()["data"]["checkout_uuid"])
        make_late(late)
        assert self._read(document, api, late) == "expired"
        held = pay(unpaid)
        make_late(held)
        assert self._read(document, api, held) == "voided"
        refused = self.fits(document, api.post(f"checkouts/{held.pk}/capture", {}), "capture_checkout")
        assert refused["error"]["code"] == "not_capturable"
        self.fits(document, api.post(f"checkouts/{held.pk}/cancel"), "cancel_checkout")
        self.fits(document, api.get("checkouts"), "list_checkouts")

    def _advance(self, api: Api, checkout: Checkout) -> Any:
        """Advance the checkout by two minutes, so that its refund settles."""
        path = f"/api/sandbox/v1/checkouts/{checkout.pk}/advance"
        for _ in range(2):
            answer = api.client.post(
                path, b'{"seconds": 60}', content_type="application/json", headers=api.headers({})
            )
        return answer

    def _read(self, document: dict[str, Any], api: Api, checkout: Checkout) -> str:
        """Read the checkout, check that its fields fit its status, and return the status."""
        answer = api.get(f"checkouts/{checkout.pk}")
        found = self.fits(document, answer, "read_checkout")["data"]
        status = Status(found["status"])
        due = {name for name, states in CheckoutOut.ALWAYS.items() if status in states}
        may = {name for name, states in CheckoutOut.SOMETIMES.items() if status in states}
        limited = found.keys() & {*CheckoutOut.ALWAYS, *CheckoutOut.SOMETIMES}
        assert due <= limited <= due | may
        return status.value
