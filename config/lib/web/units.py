"""A number and its unit stay on one line."""

import re

_PARTED = re.compile(r"([0-9}](?:</\w+>)?) (?=(?:ms|s|min|h|KiB|MiB|%)(?![\w}]))")


def whole(words: str) -> str:
    """Return the words with a no-break space between each number, or its place, and a short unit."""
    return _PARTED.sub("\\1\N{NO-BREAK SPACE}", words)
