"""Decodes the form encoding that Stripe accepts: `a[b]=1`, `a[0]=x`, `a[]=x`. (Reference: "Introduction")"""

import re
from typing import Any
from urllib.parse import parse_qsl

from tests.payments.stripe_peer.errors import Refusal

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")


def decode(text: str) -> dict[str, Any]:
    """Return the parameters of a query or a form. If all names of an object are numbers, it becomes a list."""
    tree: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        matched = _NAME.fullmatch(name)
        if matched is None:
            raise Refusal(f"Invalid parameter name: {name}", param=name)
        _put(tree, [matched[1], *re.findall(r"\[([^\[\]]*)\]", matched[2])], value)
    return {name: _listed(value) for name, value in tree.items()}


def _put(tree: dict[str, Any], names: list[str], value: str) -> None:
    for name in names[:-1]:
        tree = tree.setdefault(name or str(len(tree)), {})
        if not isinstance(tree, dict):
            raise Refusal(f"Invalid parameter: {names[0]} is a value and an object at once", param=names[0])
    last = names[-1] or str(len(tree))
    if last in tree:
        raise Refusal(f"Invalid parameter: {names[0]} is given twice", param=names[0])
    tree[last] = value


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _listed(part) for name, part in value.items()}
    if all(name.isdecimal() for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner
