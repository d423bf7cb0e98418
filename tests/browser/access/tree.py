"""Returns what a screen reader reads on a page, in the right order, from Chromium's accessibility tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page

Node = dict[str, Any]
NAMED = {
    *("button", "link", "textbox", "radio", "checkbox", "spinbutton", "combobox", "DisclosureTriangle"),
    *(
        "DisclosureTriangleGrouped",
        "heading",
        "image",
        "progressbar",
        "meter",
        "switch",
        "searchbox",
        "option",
        "menuitem",
        "Iframe",
    ),
}
INLINE = {"StaticText", "InlineTextBox", "strong", "emphasis", "time", "code", "mark", "Abbr", "LineBreak"}
CONTAINERS = {
    *("banner", "main", "contentinfo", "navigation", "form", "region", "complementary", "search", "status"),
    *(
        "alert",
        "group",
        "radiogroup",
        "list",
        "listitem",
        "dialog",
        "article",
        "table",
        "row",
        "figure",
        "log",
    ),
    *(
        "DescriptionList",
        "term",
        "definition",
        "cell",
        "columnheader",
        "rowheader",
        "paragraph",
        "Details",
        "LabelText",
        "Legend",
    ),
}
SHORT = {
    **{"DisclosureTriangle": "summary", "DisclosureTriangleGrouped": "summary"},
    **{"DescriptionList": "terms", "paragraph": "text", "LabelText": "label", "Legend": "legend"},
}
UNNAMED = {"paragraph", "term", "LabelText", "Legend"}
STATES = ("live", "checked", "expanded", "invalid", "required", "disabled")
UNSAID = (None, "", False, "false", "off")
PLACEHOLDERS = (
    (r"£[\d,]+(\.\d\d)?", "{money}"),
    (r"\b\d{1,2}:\d\d(:\d\d)?\b", "{time}"),
    (r"\b(\w{3,9},? )?\d{1,2}\s(January|February|March|April|May|June|July|August|September|October|November"
     r"|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)(\s\d{4})?\b", "{date}"),
    (r"\bA-[0-9a-f]{2} ?[0-9a-f]{6}\b", "{order}"),
    (r"(?<=Your code is )\d{6}\b", "{code}"),
    (r"•••• \d{4}", "{number}"),
    (r"[\w.]+:\d+/pay/g/[\w-]+", "{link}"),
)  # fmt: skip


def reading(page: Page) -> str:
    """Return one line per element that is read: its role, state, name and hint, indented by its depth in the tree."""
    session = page.context.new_cdp_session(page)
    nodes: list[Node] = session.send("Accessibility.getFullAXTree")["nodes"]
    document = session.send("DOM.getDocument", {"depth": -1})["root"]
    session.detach()
    tree = _Tree(nodes, current={it["backendNodeId"] for it in _elements(document) if _is_current(it)})
    return "\n".join(_hidden(line) for line in tree.below(nodes[0]))


def _elements(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("children", ()):
        yield from _elements(child)


def _is_current(element: Node) -> bool:
    """Return whether an element has aria-current, which Chromium's accessibility tree does not contain."""
    return "aria-current" in element.get("attributes", ())[::2]


class _Tree:
    """The nodes of an accessibility tree, by id."""

    def __init__(self, nodes: list[Node], current: set[int]) -> None:
        self.current = current
        self.nodes = {node["nodeId"]: node for node in nodes}

    def below(self, node: Node) -> list[str]:
        """Return the lines for the contents of a node. Consecutive texts share one line."""
        lines: list[str] = []
        text = ""
        for child in self._flat(node):
            if _role(child) in INLINE:
                text += f" {self._words(child)}"
                continue
            lines += _line(text)
            text = ""
            lines += self._lines(child)
        return lines + _line(text)

    def _flat(self, node: Node) -> list[Node]:
        """Return the children of a node.

        If a screen reader does not announce a child, the child's own children take its place.
        """
        found: list[Node] = []
        for pk in node.get("childIds", ()):
            child = self.nodes.get(pk)
            if child is None:
                continue
            means = not child.get("ignored") and _role(child) in (NAMED | CONTAINERS | INLINE)
            found += [child] if means else self._flat(child)
        return found

    def _words(self, node: Node) -> str:
        if _role(node) == "StaticText":
            return _name(node)
        return "".join(self._words(child) for child in self._flat(node)) or (
            " " if _role(node) == "LineBreak" else ""
        )

    def _lines(self, node: Node) -> list[str]:
        role = _role(node)
        head = SHORT.get(role, role) + _label(node)
        head += " [current]" if node.get("backendDOMNodeId") in self.current else ""
        if role in NAMED:
            return [f'{head} "{_name(node)}"{_described(node)}']
        name = f' "{_name(node)}"' if _name(node) and role not in UNNAMED else ""
        below = self.below(node)
        if len(below) == 1 and below[0].startswith("text: "):
            return [f"{head}{name}: {below[0][6:]}"]
        return (
            [f"{head}{name}{_described(node)}"] + [f"  {line}" for line in below]
            if below or name or "live" in head
            else []
        )


def _role(node: Node) -> str:
    return str(node.get("role", {}).get("value", ""))


def _name(node: Node) -> str:
    return str(node.get("name", {}).get("value", ""))


def _described(node: Node) -> str:
    words = str(node.get("description", {}).get("value", ""))
    return f" ({words})" if words else ""


def _label(node: Node) -> str:
    states = {it["name"]: it["value"].get("value") for it in node.get("properties", ())}
    if _role(node) == "heading":
        return f" {states.get('level')}"
    said = [f"{name}" if states[name] in (True, "true") else f"{name}={states[name]}"
            for name in STATES if states.get(name) not in UNSAID]  # fmt: skip
    return "".join(f" [{word}]" for word in said)


def _line(text: str) -> list[str]:
    words = re.sub(r" ([.,:?’])", r"\1", " ".join(text.split()))
    return [f"text: {words}"] if words else []


def _hidden(line: str) -> str:
    """Replace each value that differs between test runs with the name of its kind."""
    for pattern, kind in PLACEHOLDERS:
        line = re.sub(pattern, kind, line)
    return line
