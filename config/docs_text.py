"""Text of the API's document as HTML."""

import json as codec
import re
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def slug(title: str) -> str:
    """Return a title as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def inline(text: str) -> SafeString:
    """Return a sentence or two as HTML."""
    return mark_safe(_MARKDOWN.renderInline(text))  # noqa: S308  # CommonMark with raw HTML switched off


def block(text: str, title: str) -> SafeString:
    """Return paragraphs, lists and tables as HTML; what is wide scrolls by itself and by key."""
    html = _MARKDOWN.render(text).replace("<pre>", '<pre tabindex="0">').replace("</table>", "</table></div>")
    opening = format_html('<div class="scroll" tabindex="0" role="group" aria-label="{}"><table>', title)
    return mark_safe(html.replace("<table>", opening))  # noqa: S308  # as above


def json(value: Any) -> str:
    """Return a value as it is written in an example."""
    return codec.dumps(value, indent=2, ensure_ascii=False)
