"""Each event type has a JSON Schema at a stable address, and the events' bodies are valid in it."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from jsonschema_rs import Draft202012Validator
from jsonschema_rs import meta as metaschema

from config.openapi import examples
from tests import event_bodies
from tests.config import described
from webhooks.models import EventType

ROOT = Path(settings.BASE_DIR)
KINDS = [kind.value for kind in EventType]


def served(kind: str) -> dict[str, Any]:
    answer = Client().get(f"/api/schema/events/{kind}.json")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/schema+json")
    assert answer["Cache-Control"] == "public, max-age=300"
    schema: dict[str, Any] = answer.json()
    return schema


@pytest.mark.rule("event.schemas")
@pytest.mark.parametrize("kind", KINDS)
class TestSchema:
    def test_is_valid_and_names_its_own_address(self, kind: str) -> None:
        schema = served(kind)
        metaschema.validate(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema["$id"] == f"{settings.BASE_URL}/api/schema/events/{kind}.json"

    def test_needs_no_other_document_and_has_no_extension_of_openapi(self, kind: str) -> None:
        text = str(served(kind))
        assert set(re.findall(r"'\$ref': '(.*?)'", text)) <= {
            f"#/$defs/{name}" for name in served(kind)["$defs"]
        }
        assert "x-" not in text and "components" not in text

    def test_fits_the_examples_of_the_document_and_not_another_type(self, kind: str) -> None:
        judge = Draft202012Validator(served(kind), validate_formats=True)
        for other in KINDS:
            assert judge.is_valid(examples.event_example(other)) == (other == kind)
        judge.validate(examples.event_example(kind) | {"added_later": 1})

    def test_refuses_a_body_without_one_of_its_fields(self, kind: str) -> None:
        judge, told = Draft202012Validator(served(kind)), examples.event_example(kind)
        for name in told:
            assert not judge.is_valid({field: value for field, value in told.items() if field != name})

    def test_has_the_fields_of_the_webhook_in_the_document(self, kind: str) -> None:
        document = described.document()
        operation = document["webhooks"][kind]["post"]
        (name,) = re.findall(
            r"schemas/(\w+)", operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        )
        assert (
            served(kind)["properties"].keys() == document["components"]["schemas"][name]["properties"].keys()
        )
        assert operation["externalDocs"]["url"] == served(kind)["$id"]

    def test_is_linked_from_the_documentation(self, kind: str) -> None:
        page = Client().get("/api/docs").content.decode()
        assert page.count(f'href="/api/schema/events/{kind}.json"') == 2


@pytest.mark.parametrize(
    "name", ["checkout.captured", "checkout.voided.", "Checkout.voided", "checkoutxvoided"]
)
def test_an_unknown_type_has_no_schema(name: str) -> None:
    answer = Client().get(f"/api/schema/events/{name}.json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.rule("event.schemas")
class TestCheckedBodies:
    def test_are_those_of_every_module_that_emits(self) -> None:
        apps = ("checkout", "hosted_page", "payments", "portal", "webhooks")
        files = [path for app in apps for path in (ROOT / app).rglob("*.py")]
        emitting = {path for path in files if re.search(r"\boutbox\.emit(_all)?\(", path.read_text())}
        assert emitting == {Path(str(emitter.__file__)) for emitter in event_bodies.EMITTERS}

    def test_that_lack_a_field_or_have_one_more_are_named(self) -> None:
        told = examples.event_example("checkout.voided")
        assert event_bodies.problems(told) == []
        assert event_bodies.problems(told | {"data": told["data"] | {"more": 1}}) != []
        assert event_bodies.problems(told | {"created_at": "yesterday"}) != []
