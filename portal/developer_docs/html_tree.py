"""The HTML of the documentation page, as a tree of elements."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}  # elements without an end tag


@dataclass
class Element:
    """An element on a page, with its attributes and its children: elements and texts."""

    tag: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """Return the class names in the attribute `class`."""
        return self.attributes.get("class", "").split()

    def elements(self) -> Iterator["Element"]:
        """Yield this element and all elements within it, in document order."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.elements()

    def first(self, *tags: str) -> "Element | None":
        """Return the first element with one of these tags, or None."""
        return next((element for element in self.elements() if element.tag in tags), None)

    def text(self) -> str:
        """Return the text in this element and in all elements within it."""
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)


class _TreeBuilder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parse_html(html: str) -> Element:
    """Return the root element of a page from our templates, in which every element has an end tag."""
    builder = _TreeBuilder()
    builder.feed(html)
    builder.close()
    return builder.root
