"""Finds the elements of an HTML page that can run code: scripts, frames, inline code."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

# Elements that can load code, or change the address from which code is loaded. Our pages never use them.
OTHER_CODE = ("iframe", "frame", "object", "embed", "base", "portal")


@dataclass(frozen=True)
class LoadedScript:
    """A script element whose code is loaded from an address."""

    address: str
    integrity: str


@dataclass
class PageContent:
    """The parts of a page that can run code.

    `scripts` are the loaded scripts. `other` has a description of each other element or attribute that can
    run code.
    """

    scripts: list[LoadedScript] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


def read_content(page: str) -> PageContent:
    """Return the parts of a page that can run code. The text need not be HTML."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if "--!>" in page:  # browsers see the end of a comment here, some parsers do not
        reader.content.other.append("an end of a comment that readers understand differently")
    return reader.content


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.content = PageContent()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes: dict[str, str] = {}
        for name, value in attrs:
            if name in attributes:  # browsers use the first value, other parsers the last
                self.content.other.append(f"a repeated attribute {name} in {tag}")
            attributes.setdefault(name, value or "")
        if tag == "script" and attributes.get("src"):
            self.content.scripts.append(LoadedScript(attributes["src"], attributes.get("integrity", "")))
        elif tag == "script":
            self.content.other.append("an inline script")
        elif tag in OTHER_CODE:
            self.content.other.append(f"an element {tag}")
        for name, value in attributes.items():
            if name.startswith("on"):
                self.content.other.append(f"inline code in {tag}, {name}")
            elif value.strip().lower().startswith("javascript:"):
                self.content.other.append(f"an address of inline code in {tag}, {name}")
