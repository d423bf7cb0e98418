"""Each documentation chapter is also a Markdown page with the same words. /llms.txt lists these pages."""

import re

import pytest
from django.conf import settings
from django.test import Client
from markdown_it import MarkdownIt

from config.openapi import schema
from portal.developer_docs import downloads, html_tree, machine_pages, page
from portal.developer_docs.html_tree import Element
from portal.developer_docs.page_markdown import _is_left_out

PARSER = MarkdownIt("commonmark").enable("table")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def chapters() -> dict[str, Element]:
    """Return the chapters of the HTML page, keyed by their anchors."""
    root = html_tree.parse_html(page.render_html(schema.reference, is_known=False))
    return {part.attributes["id"]: part for part in root.elements() if "chapter" in part.classes}


def is_left_out(element: Element) -> bool:
    """Return whether an element's text is missing in Markdown, such as the bar above a code block."""
    return _is_left_out(element) or "code-bar" in element.classes


def words(element: Element) -> list[str]:
    """Return the words that a reader sees, without punctuation, because Markdown adds some."""

    def text(part: Element) -> str:
        if part.tag == "code":
            return part.text()  # a <wbr> does not end a word
        kept = (child for child in part.children if isinstance(child, str) or not is_left_out(child))
        return " ".join(child if isinstance(child, str) else text(child) for child in kept)

    return re.findall(r"\w+", text(element))


def get(path: str, accept: str = "*/*") -> str:
    answer = Client().get(path, headers={"accept": accept})
    assert answer.status_code == 200, path
    return answer.content.decode()


class TestMarkdownPages:
    @pytest.mark.rule("docs.markdown")
    def test_have_the_words_of_each_chapter(self, chapters: dict[str, Element]) -> None:
        assert {"quick-start", "recipes", "calls-checkouts", "objects", "errors"} <= set(chapters)
        for name, chapter in chapters.items():
            text = get(f"/api/docs/{name}.md")
            shown = words(html_tree.parse_html(PARSER.render(text)))
            missing = [word for word in words(chapter) if word not in set(shown)]
            assert missing == [], name
            assert len(shown) >= 0.98 * len(words(chapter)), name

    @pytest.mark.rule("docs.markdown")
    def test_link_to_existing_addresses(self, chapters: dict[str, Element]) -> None:
        text = get("/api/docs.md")
        links = set(LINK.findall(text))
        assert f"{settings.BASE_URL}/api/docs/errors.md#error-invalid_cursor" in links
        for link in links:
            assert link.startswith(f"{settings.BASE_URL}/"), link
            file = link.removeprefix(f"{settings.BASE_URL}/api/docs/").partition("#")[0]
            if file.endswith(".md"):
                assert file.removesuffix(".md") in chapters, link

    @pytest.mark.rule("docs.markdown")
    def test_have_the_complete_programs_last_in_the_text_with_all_chapters(
        self, chapters: dict[str, Element]
    ) -> None:
        text = get("/api/docs.md")
        titles = {name: get(f"/api/docs/{name}.md").partition("\n")[0] for name in chapters}
        order = sorted(chapters, key=lambda name: text.index(f"\n{titles[name]}\n"))
        last = ["quick-start", "receivers"]
        assert order == [name for name in chapters if name not in last] + last
        assert "The last chapters, Quick start and Receivers, have complete programs." in text[:400]

    @pytest.mark.rule("docs.markdown")
    @pytest.mark.parametrize(
        ("accept", "is_markdown"),
        [
            ("text/markdown", True),
            ("text/markdown, text/html, */*", True),
            ("text/html;q=0.5, text/markdown", True),
            ("text/html, text/markdown;q=0.9", False),
            ("text/html,application/xhtml+xml,*/*;q=0.8", False),
            ("*/*", False),
            ("", False),
            ("nonsense", False),
        ],
    )
    def test_are_sent_to_callers_who_prefer_them(self, accept: str, is_markdown: bool) -> None:
        answer = Client().get("/api/docs", headers={"accept": accept})
        kind = "markdown" if is_markdown else "html"
        assert answer["Content-Type"] == f"text/{kind}; charset=utf-8"
        assert {"Accept", "Cookie"} <= set(answer["Vary"].split(", "))
        assert (answer.content.decode() == get("/api/docs.md")) == is_markdown

    def test_show_a_member_no_name_and_no_client_id(self) -> None:
        assert "<CLIENT_ID>" in get("/api/docs/quick-start.md")

    @pytest.mark.rule("api.json_alone")
    def test_that_do_not_exist_are_a_404_in_json(self) -> None:
        for path in ("/api/docs/nope.md", "/api/docs/quick-start", "/api/docs/.md", "/api/docs/errors.md/"):
            answer = Client().get(path)
            assert answer.status_code == 404 and answer.json()["error"]["code"] == "not_found", path

    def test_accept_only_reads(self) -> None:
        for path in ("/api/docs.md", "/api/docs/errors.md"):
            assert Client().post(path).status_code == 405

    def test_are_named_by_the_page_for_people(self) -> None:
        html = get("/api/docs")
        assert '<link rel="alternate" type="text/markdown" href="/api/docs.md">' in html
        assert '<a href="/llms.txt">' in html


class TestLlmsText:
    @pytest.mark.rule("docs.llms")
    def test_lists_every_page_and_every_file(self, chapters: dict[str, Element]) -> None:
        text = get("/llms.txt")
        title, summary = text.split("\n\n")[:2]
        assert title.startswith("# ") and summary == f"> {machine_pages.SUMMARY}"
        addresses = [link.removeprefix(settings.BASE_URL) for link in LINK.findall(text)]
        assert [name for name in chapters if f"/api/docs/{name}.md" not in addresses] == []
        assert [name for name in downloads.FILES if f"/api/docs/{name}" not in addresses] == []
        assert {"/api/schema", "/api/docs.md"} <= set(addresses)
        for address in addresses:
            assert Client().get(address).status_code in (200, 302), address
        lists = [part for part in text.split("\n\n")[3:] if not part.startswith("## ")]
        assert lists and all(
            re.fullmatch(r"- \[.+\]\(.+\)(: .+)?", line) for part in lists for line in part.splitlines()
        )

    @pytest.mark.rule("docs.llms")
    def test_says_which_environment_it_is(self) -> None:
        assert "This is the sandbox. No real money moves." in get("/llms.txt")
