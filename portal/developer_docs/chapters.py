"""The chapters of the documentation: its parts and sections, and the templates that some sections include."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString

from portal.developer_docs import guide, page_text

# The templates that follow the text of a section, keyed by the section's anchor.
TEMPLATES = {
    "quick-start": "docs/_quick_start.html",
    "receivers": "docs/_receivers.html",
    "recipes": "docs/_recipes.html",
    "your-backend-slept-what-now": "docs/_catching_up.html",
}


_RECIPE = re.compile(r" \(\[recipe\]\(#recipe-[\w-]+\)\)")
_LINK_TO_TESTING = re.compile(r"\[([^\]]+)\]\(#on-your-own-machine\)")


class Section(NamedTuple):
    """A section of the documentation. `template` is shown after its text; it is "" for most sections."""

    anchor: str
    title: str
    html: SafeString
    template: str


class Part(NamedTuple):
    """The sections that the table of contents lists under one title."""

    title: str
    sections: list[Section]


def chapters_text(document: dict[str, Any]) -> str:
    """Return the document's description, and the chapters about testing and about going live.

    If there is no sandbox, the chapter about testing and the links to it are left out.
    """
    testing, live = (Path(__file__).with_name(name).read_text() for name in ("testing.md", "live.md"))
    later_chapters = f"{testing}\n{live}" if settings.SANDBOX else live
    text = f"{document['info']['description']}\n{guide.fill_in_values(later_chapters, document)}"
    return text if settings.SANDBOX else _LINK_TO_TESTING.sub(r"\1", _RECIPE.sub("", text))


def split_into_parts(text: str) -> list[Part]:
    """Split a text into parts and sections. A line with # starts a part, a line with ## starts a section."""
    return [
        Part(title, [_parse_section(section) for section in re.split(r"^## ", body, flags=re.M)[1:]])
        for title, body in (part.split("\n", 1) for part in re.split(r"^# ", text, flags=re.M)[1:])
    ]


def _parse_section(text: str) -> Section:
    title, body = text.split("\n", 1)
    anchor = page_text.make_anchor(title)
    return Section(anchor, title, page_text.render_block(body, title), TEMPLATES.get(anchor, ""))
