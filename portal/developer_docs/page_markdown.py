"""Converts a part of the documentation page from HTML to Markdown (CommonMark with tables).

It handles the elements that the page's templates use. The page is therefore the only source, and the Markdown
cannot differ from it. Rule docs.markdown.
"""

import re
from collections.abc import Callable
from itertools import groupby
from pathlib import PurePath

from portal.developer_docs.html_tree import Element

# For each title of a code block on the page, the language name with which the block starts in Markdown.
FENCES = {"Shell": "sh", "Python": "python", "HTTP": "http", "JSON": "json"}
FENCES_BY_SUFFIX = {".mjs": "js"}
_INLINE = {"a", "b", "bdi", "br", "code", "em", "i", "span", "strong", "wbr"}
_LEFT_OUT = {"input", "label", "legend", "nav", "script", "search"}
_MARKS = {"b": "**", "strong": "**", "em": "*", "i": "*"}
_SPACE = re.compile(r"[ \t\n\u00a0]+")
_SPECIAL = re.compile(r"(?=[\\`*<|])")


class MarkdownWriter:
    """Writes a chapter of the page as Markdown. The chapter's title, an h2, becomes the first heading.

    `address_of` returns the address for a link's `href`.
    """

    def __init__(self, address_of: Callable[[str], str]) -> None:
        self._address_of = address_of

    def blocks(self, element: Element) -> list[str]:
        """Return the element as Markdown blocks. Blank lines separate the blocks."""
        if _is_left_out(element):
            return []
        match element.tag:
            case "h1" | "h2" | "h3" | "h4":
                return [f"{'#' * max(1, int(element.tag[1]) - 1)} {self._line(element)}"]
            case "p":
                return self._paragraph(element)
            case "ul" | "ol":
                return [self._list(element)]
            case "dl":
                return [self._definitions(element)]
            case "table":
                return [self._table(element)]
            case "summary":
                return self._summary(element)
        return [_code_block(element)] if "code" in element.classes else self._children(element)

    def _children(self, element: Element) -> list[str]:
        """Return the children's blocks. Adjacent texts and inline elements form one paragraph."""
        found: list[str] = []
        for is_inline, children in groupby(element.children, _is_inline):
            if is_inline:
                found += self._paragraph(Element("p", {}, list(children)))
            else:
                found += [
                    block for child in children if isinstance(child, Element) for block in self.blocks(child)
                ]
        return found

    def _paragraph(self, element: Element) -> list[str]:
        return [words] if (words := self._line(element)) else []

    def _summary(self, summary: Element) -> list[str]:
        """Return the title of a folded part, as a heading or a bold line."""
        if summary.first("h2", "h3", "h4"):
            return self._children(summary)
        return [f"**{self._line(summary)}**"]

    def _list(self, element: Element) -> str:
        items = [child for child in element.children if isinstance(child, Element)]
        is_loose = any(len(self._children(item)) > 1 for item in items)
        marks = [f"{number}. " if element.tag == "ol" else "- " for number in range(1, len(items) + 1)]
        return ("\n\n" if is_loose else "\n").join(
            _hang("\n\n".join(self._children(item)), mark) for item, mark in zip(items, marks, strict=True)
        )

    def _definitions(self, element: Element) -> str:
        terms = [self._line(part) for part in element.elements() if part.tag == "dt"]
        texts = [self._line(part) for part in element.elements() if part.tag == "dd"]
        return "\n".join(
            f"- {term}: {text}" if text else f"- {term}" for term, text in zip(terms, texts, strict=True)
        )

    def _table(self, element: Element) -> str:
        rows = [
            [self._line(cell) for cell in row.elements() if cell.tag in ("th", "td")]
            for row in element.elements()
            if row.tag == "tr"
        ]
        rows.insert(1, ["---"] * len(rows[0]))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)

    def _line(self, element: Element) -> str:
        """Return the element's text as one line."""
        return _SPACE.sub(" ", "".join(self._inline(child) for child in element.children)).strip()

    def _inline(self, child: Element | str) -> str:
        if isinstance(child, str):
            return _SPECIAL.sub(r"\\", child)
        if _is_left_out(child):
            return ""
        if child.tag == "code":
            return _code_span(child.text())
        words = "".join(self._inline(part) for part in child.children)
        if child.tag == "a":
            return f"[{words.strip()}]({self._address_of(child.attributes['href'])})"
        mark = _MARKS.get(child.tag, "")
        return f"{mark}{words}{mark}"


def _is_left_out(element: Element) -> bool:
    """Return whether an element has no meaning outside the page, such as a label for screen readers."""
    return element.tag in _LEFT_OUT or not {"spoken", "scroll-hint"}.isdisjoint(element.classes)


def _is_inline(child: Element | str) -> bool:
    return isinstance(child, str) or child.tag in _INLINE


def _hang(text: str, mark: str) -> str:
    """Return a list item, with its further lines indented."""
    return mark + re.sub(r"\n(?=[^\n])", f"\n{' ' * len(mark)}", text)


def _code_span(text: str) -> str:
    fence = "``" if "`" in text else "`"
    # In a table, a bar would end the cell.
    return f"{fence}{text}{fence}".replace("|", r"\|")


def _code_block(element: Element) -> str:
    """Return a code block. If its title names neither a language nor a file, the title comes above the block."""
    title = bar.text().strip() if (bar := element.first("p")) else ""
    code = pre.text().rstrip("\n") if (pre := element.first("pre")) else ""
    suffix = PurePath(title).suffix
    language = FENCES.get(title) or FENCES_BY_SUFFIX.get(suffix, suffix[1:])
    above = f"{title}:\n\n" if title and not language else ""
    language = language or ("json" if code[:1] in ("{", "[") else "")
    fence = "````" if "```" in code else "```"
    return f"{above}{fence}{language}\n{code}\n{fence}"
