"""Text of the API's document as HTML."""

import json as codec
import re
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

# Raw HTML in a text stays text.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def slug(title: str) -> str:
    """Return a title as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def inline(text: str) -> SafeString:
    """Return a sentence or two as HTML."""
    return SafeString(_MARKDOWN.renderInline(text))


def block(text: str, title: str) -> SafeString:
    """Return paragraphs, lists and tables as HTML; what is too wide scrolls by itself, also by keyboard."""
    html = _MARKDOWN.render(text).replace("<pre>", '<pre tabindex="0">').replace("</table>", "</table></div>")
    opening = format_html('<div class="scroll" tabindex="0" role="group" aria-label="{}"><table>', title)
    return SafeString(html.replace("<table>", opening))


def json(value: Any) -> str:
    """Return a value as it is written in an example."""
    return codec.dumps(value, indent=2, ensure_ascii=False)
