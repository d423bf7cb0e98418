"""The documentation's chapters: its parts and sections, and the templates that follow some sections."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString

from portal.developer_docs import guide, page_text

# The template that follows a section's text, by the section's anchor.
TEMPLATES = {
    "quick-start": "docs/_quick_start.html",
    "receivers": "docs/_receivers.html",
    "recipes": "docs/_recipes.html",
    "your-backend-slept-what-now": "docs/_catching_up.html",
}


_RECIPE = re.compile(r" \(\[recipe\]\(#recipe-[\w-]+\)\)")
_LINK_TO_TESTING = re.compile(r"\[([^\]]+)\]\(#on-your-own-machine\)")


class Section(NamedTuple):
    """A section of the documentation. `template` is the template that follows its text, or ""."""

    anchor: str
    title: str
    html: SafeString
    template: str


class Part(NamedTuple):
    """The sections that the table of contents shows under one title."""

    title: str
    sections: list[Section]


def chapters_text(document: dict[str, Any]) -> str:
    """Return the document's description, and the chapters on testing and going live.

    If there is no sandbox, the chapter on testing is left out, and so are the links to it.
    """
    testing, live = (Path(__file__).with_name(name).read_text() for name in ("testing.md", "live.md"))
    later_chapters = f"{testing}\n{live}" if settings.SANDBOX else live
    text = f"{document['info']['description']}\n{guide.fill_in_values(later_chapters, document)}"
    return text if settings.SANDBOX else _LINK_TO_TESTING.sub(r"\1", _RECIPE.sub("", text))


def split_into_parts(text: str) -> list[Part]:
    """Split a text into parts and sections. A line with # begins a part, a line with ## begins a section."""
    return [
        Part(title, [_parse_section(section) for section in re.split(r"^## ", body, flags=re.M)[1:]])
        for title, body in (part.split("\n", 1) for part in re.split(r"^# ", text, flags=re.M)[1:])
    ]


def _parse_section(text: str) -> Section:
    title, body = text.split("\n", 1)
    anchor = page_text.make_anchor(title)
    return Section(anchor, title, page_text.render_block(body, title), TEMPLATES.get(anchor, ""))
