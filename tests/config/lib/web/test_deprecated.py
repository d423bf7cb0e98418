"""Responses to a deprecated call announce its removal at least twelve months in advance."""

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from config.lib.web import deprecated
from config.lib.web.deprecated import Deprecated
from config.openapi import schema
from portal.developer_docs import chapters
from tests.conftest import Api

SINCE = datetime(2027, 1, 31, tzinfo=UTC)
UNTIL = datetime(2028, 3, 1, tzinfo=UTC)
ROW = Deprecated("/api/merchant/v1/webhooks/deliveries", SINCE, UNTIL, "Use events.", method="GET")


@pytest.mark.django_db
@pytest.mark.rule("docs.deprecation")
class TestDeprecated:
    def test_is_announced_by_each_response_of_a_deprecated_call_only(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert not {"Deprecation", "Sunset", "Link"} & set(api.get("webhooks/deliveries").headers)
        monkeypatch.setattr(deprecated, "TABLE", (ROW,))
        for answer in (api.get("webhooks/deliveries"), api.get("webhooks/deliveries?limit=0")):
            assert answer["Deprecation"] == "@1801353600"
            assert answer["Sunset"] == "Wed, 01 Mar 2028 00:00:00 GMT"
            assert answer["Link"].startswith(f"<{settings.BASE_URL}/api/docs#versions>")
        assert "Sunset" not in api.get("checkouts").headers
        assert "Sunset" not in api.post("webhooks/deliveries").headers

    def test_is_marked_in_the_document_and_listed_on_the_page(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(deprecated, "TABLE", (ROW,))
        schema.document.cache_clear()
        try:
            document = schema.document()
        finally:
            schema.document.cache_clear()
        marked = {
            f"{method} {path}"
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if operation.get("deprecated")
        }
        assert marked == {"get /api/merchant/v1/webhooks/deliveries"}
        assert "ends on 1 March 2028. Use events." in chapters.chapters_text(document)

    def test_lasts_at_least_twelve_months(self) -> None:
        with pytest.raises(deprecated.TooSoon):
            Deprecated("/api/merchant/v1/", SINCE, SINCE + timedelta(days=365), "Use v2.")
