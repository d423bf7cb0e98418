"""The documentation page has every anchor that links refer to, and no link to a different host."""

import re
from html.parser import HTMLParser

import pytest
from django.conf import settings
from django.test import Client

from config import errors
from portal.developer_docs import causes, page_text
from tests.config import described
from tests.conftest import Api


class Page(HTMLParser):
    """The anchors, the link addresses, and the inline scripts and styles of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: list[str] = []
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("href", "src", "action") if name in given]
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []


@pytest.fixture(scope="module")
def page() -> Page:
    answer = Client().get("/api/docs")
    assert answer.status_code == 200
    return Page(answer.content.decode())


class TestPage:
    @pytest.mark.rule("api.document")
    def test_has_an_anchor_for_each_error_code(self, page: Page) -> None:
        assert {f"error-{code}" for code in errors.ERRORS} <= set(page.anchors)

    @pytest.mark.rule("api.error_pages")
    def test_explains_each_error_and_its_remedy(self) -> None:
        assert list(causes.CAUSES) == list(errors.ERRORS)
        html = Client().get("/api/docs").content.decode()
        for code, cause in causes.CAUSES.items():
            (told,) = re.findall(rf'<li class="refusal" id="error-{code}">.*?</li>', html, re.S)
            assert (
                page_text.render_inline(cause.words) in told and page_text.render_inline(cause.remedy) in told
            )
            assert f'"code": "{code}"' in told

    @pytest.mark.rule("api.error_pages")
    def test_shows_the_names_in_a_message_as_code(self) -> None:
        html = Client().get("/api/docs").content.decode()
        assert 'Leave <code class="whole">amount</code> out to refund the full amount.' in html
        text = Client().get("/api/docs/errors.md").content.decode()
        assert "Leave `amount` out to refund the full amount." in text
        assert "\\`" not in Client().get("/api/docs.md").content.decode(), "a backquote of the page's text"

    @pytest.mark.rule("refund.time")
    def test_says_how_long_a_refund_takes(self) -> None:
        chapter = Client().get("/api/docs/refunds.md").content.decode()
        assert "stays `pending` until the card provider has confirmed or refused it" in chapter
        assert "the API promises no time" in chapter and "bank can take a few days to show it" in chapter
        refund = described.document()["components"]["schemas"]["Refund"]["properties"]
        assert "depends on the provider" in refund["status"]["description"]
        assert "bank can take a few days" in refund["settled_at"]["description"]

    @pytest.mark.rule("target.loopback")
    def test_says_where_an_endpoint_on_loopback_is_accepted(self) -> None:
        schemas = described.document()["components"]["schemas"]
        chapter = Client().get("/api/docs/receiving-events.md").content.decode()
        for text in (schemas["SubscriptionRequest"]["properties"]["url"]["description"], chapter):
            assert "also accepts `http://localhost` and `http://127.0.0.1`" in text

    @pytest.mark.rule("api.document", "api.error")
    def test_is_the_target_of_error_links(self, page: Page, api: Api) -> None:
        doc_url = api.get("checkouts?cursor=abc").json()["error"]["doc_url"]
        address, _, anchor = doc_url.partition("#")
        assert address == f"{settings.BASE_URL}/api/docs"
        assert anchor in page.anchors

    def test_has_every_call_and_event(self, page: Page) -> None:
        document = described.document()
        names = {operation["operationId"] for _, _, operation in described.operations(document)}
        names |= {methods["post"]["operationId"] for methods in document["webhooks"].values()}
        assert names <= set(page.anchors)

    def test_links_only_within_the_service(self, page: Page) -> None:
        outside = [address for address in page.addresses if not address.startswith(("#", "/"))]
        assert outside == []
        inside = {address[1:] for address in page.addresses if address.startswith("#")}
        assert inside <= set(page.anchors)

    def test_has_no_two_equal_anchors(self, page: Page) -> None:
        assert len(page.anchors) == len(set(page.anchors))

    @pytest.mark.rule("docs.no_script")
    def test_has_every_language_and_the_contents_without_script(self, page: Page) -> None:
        assert {"quick-start-curl", "quick-start-python", "receiver-typescript", "contents"} <= set(
            page.anchors
        )

    def test_has_no_inline_script_and_no_inline_style(self, page: Page) -> None:
        assert page.inline == []
        policy = Client().get("/api/docs")["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "style-src 'self'"} <= set(policy)

    def test_is_marked_as_test_only_in_the_sandbox(self) -> None:
        assert "<title>TEST" in Client().get("/api/docs").content.decode()
        live = described.of_production(
            "from django.test import Client; "
            "get = lambda path: Client().get(path, secure=True, headers={'host': 'checkout.example'}).content; "
            "print(*(get(path).decode() for path in ('/api/docs', '/api/docs.md', '/llms.txt')))"
        )
        assert "<title>TEST" not in live
        assert "4242424242424242" not in live
        assert "This is the live service." in live and "# Test cards" not in live
        links, anchors = (set(re.findall(name, live)) for name in (r'href="#([^"]+)', r' id="([^"]+)'))
        assert links - anchors == set()
