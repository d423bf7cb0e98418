"""The service publishes the addresses from which it sends deliveries, as a document and in the documentation."""

from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from portal.developer_docs import guide
from tests.config import described

PATH = "/api/delivery-addresses.json"


# The document is read before a test changes the setting, because the service creates it only once.
@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return described.document()


@pytest.mark.rule("target.source_addresses")
class TestSourceAddresses:
    def test_are_served_and_shown_in_the_documentation(
        self, document: dict[str, Any], settings: Settings
    ) -> None:
        settings.WEBHOOK_SOURCE_ADDRESSES = ["203.0.113.7/32", "2001:db8::/48"]
        answer = Client().get(PATH)
        assert answer["Cache-Control"] == "public, max-age=300"
        assert answer.json()["addresses"] == ["203.0.113.7/32", "2001:db8::/48"]
        assert answer.json()["message"].startswith("Deliveries come from the networks in addresses.")
        words = guide.fill_in_values(guide.GUIDE, document)
        assert "- `203.0.113.7/32`\n- `2001:db8::/48`\n" in words
        assert '`{"addresses": ["203.0.113.7/32", "2001:db8::/48"], "message": "..."}`' in words

    def test_are_an_empty_list_with_a_sentence_if_none_are_set(
        self, document: dict[str, Any], settings: Settings
    ) -> None:
        settings.WEBHOOK_SOURCE_ADDRESSES = []
        answer = Client().get(PATH).json()
        assert answer["addresses"] == []
        assert answer["message"].startswith("This service publishes no addresses for its deliveries.")
        chapter = guide.fill_in_values(guide.GUIDE, document).partition("## Delivery addresses")[2]
        assert chapter.strip().startswith(answer["message"]), "what applies here comes first"
        assert '`{"addresses": [], "message": "..."}`' in chapter, "the sample is the answer of this service"

    def test_are_linked_from_the_documentation(self) -> None:
        page = Client().get("/api/docs").content.decode()
        assert f'href="{PATH}"' in page and 'id="delivery-addresses"' in page

    def test_are_read_only(self) -> None:
        assert Client(enforce_csrf_checks=True).post(PATH).status_code == 405
