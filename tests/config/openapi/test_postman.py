"""The Postman collection against the document, and each of its requests sent to the API."""

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from checkout.models import Checkout
from config.openapi import postman, postman_purchase
from tests.config import described, story
from tests.conftest import Api

Json = dict[str, Any]


@pytest.fixture(scope="module")
def collection() -> Json:
    answer = Client().get("/api/docs/postman.json")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    made: Json = answer.json()
    return made


def folders(collection: Json) -> dict[str, list[Json]]:
    return {folder["name"]: folder["item"] for folder in collection["item"]}


def calls(collection: Json) -> Iterator[Json]:
    """The requests of the tags' folders."""
    for name, items in folders(collection).items():
        yield from items if name != postman_purchase.TITLE else []


class TestCollection:
    @pytest.mark.rule("api.postman")
    def test_has_each_call_of_the_document_once(self, collection: Json) -> None:
        document = described.document()
        told = sorted((method.upper(), path) for path, method, _ in described.operations(document))
        assert sorted(_place(item["request"]) for item in calls(collection)) == told

    @pytest.mark.rule("api.postman")
    def test_gets_its_token_by_client_credentials_from_its_variables(self, collection: Json) -> None:
        assert collection["info"]["schema"] == postman.FORMAT
        assert collection["auth"]["type"] == "oauth2"
        given = {row["key"]: row["value"] for row in collection["auth"]["oauth2"]}
        assert given["grant_type"] == "client_credentials"
        assert (given["clientId"], given["clientSecret"]) == ("{{client_id}}", "{{client_secret}}")
        assert given["accessTokenUrl"] == "{{base_url}}/oauth/token"

    def test_names_no_variable_that_it_does_not_have(self, collection: Json) -> None:
        known = {row["key"] for row in collection["variable"]} | {"$guid"}
        assert set(re.findall(r"{{(.+?)}}", json.dumps(collection))) == known

    @pytest.mark.rule("api.postman")
    @pytest.mark.long
    def test_of_production_has_no_helpers_and_no_purchase(self) -> None:
        told = described.of_production(
            "from config.openapi import postman; print(json.dumps(postman.made()))"
        )
        made = json.loads(told)
        assert "sandbox" not in json.dumps(made)
        assert set(folders(made)) == {"Token", "Checkouts", "Webhooks", "Marketing"}

    def test_is_read_alone(self) -> None:
        assert Client().post("/api/docs/postman.json").status_code == 405


def _place(request: Json) -> tuple[str, str]:
    assert request["url"]["raw"] == "/".join(["{{base_url}}", *request["url"]["path"]])
    path = request["url"]["raw"].removeprefix("{{base_url}}")
    return request["method"], path.replace("{{", "{").replace("}}", "}")


class TestRequests:
    @pytest.mark.rule("api.postman")
    def test_are_answered_as_the_document_says(self, collection: Json, api: Api, held: Checkout) -> None:
        """Each of them as it stands, all of one held checkout, in their order."""
        words = {
            "base_url": "",
            "checkout_uuid": str(held.pk),
            "client_id": api.key.client.client_id,
            "client_secret": api.key.client_secret,
            "webhook_url": story.RECEIVER,
        }
        answered = {}
        for item in calls(collection):
            answer = self.send(api, item["request"], words)
            answered[item["name"]] = answer.status_code
            assert answer.status_code not in {400, 401, 403, 404, 405, 413, 415, 500}, answer.content
        refused = {name: status for name, status in answered.items() if status >= 400}
        assert refused.keys() <= {
            "Cancel an unpaid or held checkout",
            "Pay as the customer",
            "Pay a share as a mate",
        }

    def send(self, api: Api, request: Json, words: dict[str, str]) -> Any:
        def filled(text: str) -> str:
            return re.sub(r"{{(.+?)}}", lambda name: words.get(name[1]) or str(uuid4()), text)

        headers = {row["key"]: filled(row["value"]) for row in request["header"] if not row.get("disabled")}
        token = {} if request.get("auth", {}).get("type") == "noauth" else api.headers({})
        path = filled(request["url"]["raw"].removeprefix("{{base_url}}"))
        kind = headers.pop("Content-Type", "")
        body = filled(request.get("body", {}).get("raw", ""))
        return api.client.generic(request["method"], path, body.encode(), kind, headers=token | headers)
