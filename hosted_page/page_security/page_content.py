"""Search a page's HTML for elements that can run code: scripts, frames, inline code."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

# Elements that can load code, or change where it is loaded from. No page of the service uses them.
OTHER_CODE = ("iframe", "frame", "object", "embed", "base", "portal")


@dataclass(frozen=True)
class LoadedScript:
    """A script element that loads its code from an address."""

    address: str
    integrity: str


@dataclass
class PageContent:
    """The parts of a page that can run code.

    `scripts` are the loaded scripts. `other` describes each other element or attribute that could run code.
    """

    scripts: list[LoadedScript] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


def read_content(page: str) -> PageContent:
    """Return the parts of a page that can run code. The text need not be HTML."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if "--!>" in page:  # ends a comment for browsers, but not for every parser
        reader.found.other.append("an end of a comment that readers understand differently")
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = PageContent()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, str] = {}
        for name, value in attrs:
            if name in given:  # browsers use the first value, other parsers the last
                self.found.other.append(f"a repeated attribute {name} in {tag}")
            given.setdefault(name, value or "")
        if tag == "script" and given.get("src"):
            self.found.scripts.append(LoadedScript(given["src"], given.get("integrity", "")))
        elif tag == "script":
            self.found.other.append("an inline script")
        elif tag in OTHER_CODE:
            self.found.other.append(f"an element {tag}")
        for name, value in given.items():
            if name.startswith("on"):
                self.found.other.append(f"inline code in {tag}, {name}")
            elif value.strip().lower().startswith("javascript:"):
                self.found.other.append(f"an address of inline code in {tag}, {name}")
