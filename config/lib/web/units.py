"""Functions that prevent line breaks between a number and its unit, and within an id that has a hyphen."""

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_PARTED = re.compile(r"([0-9}](?:</\w+>)?) (?=(?:ms|s|min|h|KiB|MiB|%)(?![\w}]))")
_PARTED_ID = re.compile(r"(?<!\S)\w[^\s&<-]*-[^\s&<]*\w")


def join_units(words: str) -> str:
    """Put a no-break space between a number and a short unit. A placeholder for a number counts as a number."""
    return _PARTED.sub("\\1\N{NO-BREAK SPACE}", words)


def whole_ids(words: str) -> SafeString:
    """Return the words as HTML. A line does not break within an id that has a hyphen, unless the id is too long."""
    return mark_safe(_PARTED_ID.sub(r'<bdi class="whole">\g<0></bdi>', escape(words)))  # noqa: S308 - escaped
