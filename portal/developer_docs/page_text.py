"""Converts text from the OpenAPI document into HTML."""

import json
import re
from collections.abc import MutableMapping, Sequence
from typing import Any

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from config.lib.web import units

LANGUAGES = {"sh": "Shell", "python": "Python", "http": "HTTP", "json": "JSON"}
_CODE = re.compile(r'<pre><code(?: class="language-(\w+)")?>(.*?)</code></pre>', re.DOTALL)
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
# Where long code can continue on the next line: after a separator, and before the next word of a name.
_BREAKS = re.compile(r"(?<=[/._(:\\])(?=\w)|(?<=[a-z])(?=[A-Z])")
_HEADING = re.compile(r"<h3>(.*?)</h3>")
_APOSTROPHE = re.compile(r"(?<=\w)'(?!\w*')|^'(?=s\b)")
FITS_A_LINE = 12  # how many characters of code fit on a line of a phone, even at twice the text size
FITS_A_CELL = 24  # longer code in a table is broken on a phone
MANY_COLUMNS = 6  # from this number of columns on, a table is wider than a phone
# With `html` off, HTML tags in a text are escaped.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def typeset(words: str) -> str:
    """Return running text with curly apostrophes, and without a line break between a number and its unit."""
    return units.join_units(_APOSTROPHE.sub("’", words))


def _typeset_text(state: StateCore) -> None:
    """Typeset running text. Code stays as it was typed, and short code stays on one line."""
    for token in (child for block in state.tokens for child in block.children or ()):
        if token.type == "text":
            token.content = typeset(token.content)
        elif token.type == "code_inline" and len(token.content) <= FITS_A_LINE:
            token.attrSet("class", "whole")
        elif token.type == "code_inline" and len(token.content) > FITS_A_CELL:
            token.attrSet("class", "long")


def _write_code(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """Return code as HTML. Long code has places where a line can end, so that no word of it is broken."""
    token = tokens[index]
    pieces = _BREAKS.split(token.content) if token.attrGet("class") == "long" else [token.content]
    return f"<code{renderer.renderAttrs(token)}>{'<wbr>'.join(escape(piece) for piece in pieces)}</code>"


_MARKDOWN.core.ruler.push("typeset", _typeset_text)
_MARKDOWN.add_render_rule("code_inline", _write_code)


def make_anchor(title: str) -> str:
    """Return the anchor for a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def render_inline(text: str) -> SafeString:
    """Return one or two sentences as HTML."""
    return SafeString(_MARKDOWN.renderInline(text))


def render_block(text: str, title: str) -> SafeString:
    """Return paragraphs, lists and tables as HTML.

    Wide tables and code blocks scroll separately, also with the keyboard.
    """
    html = _CODE.sub(_code_block, _MARKDOWN.render(text))
    html = _HEADING.sub(lambda match: f'<h3 id="{make_anchor(match[1])}">{match[1]}</h3>', html)
    return SafeString(_TABLE.sub(lambda match: _scrolling_table(match[0], title), html))


def _scrolling_table(table: str, title: str) -> str:
    """Return a table in a box that scrolls. Above a table with many columns, a hint for phones says so."""
    hint = '<p class="hint scroll-hint">Scroll the table sideways to see all columns.</p>'
    opening = format_html('<div class="scroll" tabindex="0" role="group" aria-label="{}">', title)
    return f"{hint if table.count('<th') >= MANY_COLUMNS + 1 else ''}{opening}{table}</div>"


def _code_block(match: re.Match[str]) -> str:
    """Return a code block below a bar that names its language and has room for a button."""
    title = LANGUAGES.get(match[1] or "", "")
    return f'<div class="code"><p class="code-bar">{title}</p><pre tabindex="0"><code>{match[2]}</code></pre></div>'


def to_json(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def to_json_line(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)
