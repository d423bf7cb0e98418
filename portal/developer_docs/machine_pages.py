"""The documentation for machines: a Markdown page for each chapter, and /llms.txt, which lists these pages.

The chapters are converted from the HTML of the documentation page. Rules docs.markdown and docs.llms.
"""

import re
from typing import NamedTuple

from django.conf import settings
from django.urls import reverse

from config.lib.once import Once
from portal.developer_docs import chapters, downloads, html_tree, page
from portal.developer_docs.html_tree import Element
from portal.developer_docs.page_markdown import MarkdownWriter
from portal.developer_docs.reference import ReadReference

# The purpose of each file, keyed by the beginning of the file's name.
PURPOSES = {
    "quickstart": "gets a token, and makes, pays, captures and refunds an order",
    "receiver": "verifies events, captures once, and catches up with missed events",
    "vectors": "signed requests, valid and invalid, each with the expected result",
    "listen": "brings the sandbox's events to a server on your own machine",
    "mcp": "an MCP server that lets a model test an integration in the sandbox",
}
SUMMARY = (
    "An API with which a shop takes card payments through a hosted checkout page, on which the customer can "
    "split the cost with friends. The shop gets a signed event, captures within two minutes, and can refund."
)
# The chapters that contain complete programs in each language. They come last in the text with all chapters.
PROGRAM_CHAPTERS = ("quick-start", "receivers")
_FIRST_SENTENCE = re.compile(r"^(?![#\-|`*\d ]).+?[.:](?= |$)", re.M)


class MarkdownPage(NamedTuple):
    """A chapter of the documentation. `name` is the chapter's anchor on the page for people."""

    name: str
    title: str
    text: str

    @property
    def address(self) -> str:
        """Return the address of the Markdown page."""
        return f"{settings.BASE_URL}{reverse('api_docs_markdown', args=[self.name])}"

    @property
    def summary(self) -> str:
        """Return the chapter's first sentence, or "" if the chapter starts with a list or a table."""
        beginning = self.text.partition("\n\n")[2].partition("\n\n")[0]
        return match[0].removesuffix(":") if (match := _FIRST_SENTENCE.match(beginning)) else ""


@Once
def markdown_pages(read_reference: ReadReference) -> dict[str, MarkdownPage]:
    """Return all chapters as Markdown pages, keyed by name, in the order of the documentation page."""
    root = html_tree.parse_html(page.render_html(read_reference, is_known=False))
    sections = [element for element in root.elements() if "chapter" in element.classes]
    page_by_anchor = {
        element.attributes["id"]: section.attributes["id"]
        for section in sections
        for element in section.elements()
        if "id" in element.attributes
    }
    writer = MarkdownWriter(lambda href: _absolute_address(href, page_by_anchor))
    pages = [_markdown_page(section, writer) for section in sections]
    return {made.name: made for made in pages}


def whole_text(read_reference: ReadReference) -> str:
    """Return all chapters as one text.

    The complete programs come last. They are a third of the text, and each reader needs only one of seven
    languages. If a model reads only the beginning of the text, it therefore still reads how the service
    works.
    """
    pages = sorted(markdown_pages(read_reference).values(), key=lambda made: made.name in PROGRAM_CHAPTERS)
    titles = " and ".join(made.title for made in pages if made.name in PROGRAM_CHAPTERS)
    beginning = f"# {read_reference().document['info']['title']}\n\n{_environment_text()}\n\n"
    beginning += f"The last chapters, {titles}, have complete programs.\n"
    return "\n".join([beginning, *(made.text for made in pages)])


def llms_text(read_reference: ReadReference) -> str:
    """Return /llms.txt. It lists the Markdown pages and the files for programs, each with its purpose."""
    pages, document = markdown_pages(read_reference), read_reference().document
    parts = {
        part.title: [section.anchor for section in part.sections]
        for part in chapters.split_into_parts(chapters.chapters_text(document))
    }
    chapter_names = {name for names in parts.values() for name in names}
    parts["Reference"] = [name for name in pages if name not in chapter_names]
    blocks = [f"# {document['info']['title']}", f"> {SUMMARY}", _environment_text()]
    for title, names in parts.items():
        blocks += [
            f"## {title}",
            "\n".join(
                _list_item(pages[name].title, pages[name].address, pages[name].summary) for name in names
            ),
        ]
    blocks += ["## Files", _list_of_files()]
    whole = f"{settings.BASE_URL}{reverse('api_docs_whole')}"
    blocks += ["## Optional", _list_item("All chapters", whole, "the pages above as one text")]
    return "\n\n".join(blocks) + "\n"


def _markdown_page(section: Element, writer: MarkdownWriter) -> MarkdownPage:
    heading = section.first("h2")
    title = heading.text() if heading else ""
    return MarkdownPage(section.attributes["id"], title, "\n\n".join(writer.blocks(section)) + "\n")


def _absolute_address(href: str, page_by_anchor: dict[str, str]) -> str:
    if href.startswith("#"):
        anchor = href[1:]
        name = page_by_anchor[anchor]
        address = f"{settings.BASE_URL}{reverse('api_docs_markdown', args=[name])}"
        return address if anchor == name else f"{address}{href}"
    return f"{settings.BASE_URL}{href}" if href.startswith("/") else href


def _environment_text() -> str:
    kind = "This is the sandbox. No real money moves." if settings.SANDBOX else "This is the live service."
    return f"Base address: {settings.BASE_URL}. {kind}"


def _list_of_files() -> str:
    items = [
        _list_item(
            "OpenAPI 3.1 document", f"{settings.BASE_URL}{reverse('api_schema')}", "each call and event"
        )
    ]
    for name, path in downloads.FILES.items():
        address = f"{settings.BASE_URL}{reverse('api_docs_file', args=[name])}"
        items.append(_list_item(name, address, PURPOSES[path.stem]))
    return "\n".join(items)


def _list_item(title: str, address: str, note: str) -> str:
    return f"- [{title}]({address})" + (f": {note}" if note else "")
