"""Unknown fields in a request's body. The API ignores them. Rule api.unknown_fields."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

from rest_framework.fields import ListField
from rest_framework.serializers import ListSerializer, Serializer

from config.lib.api import spelling

MAXIMUM = 10
LONGEST = 60  # maximum characters of a path
HEADER, SUGGESTIONS_HEADER = "X-Ignored-Fields", "X-Suggested-Fields"


class IgnoredField(NamedTuple):
    """The path of an unknown field, such as `items[0].colour`, and the field that the caller probably meant, or ""."""

    path: str
    meant: str


def ignored_fields(reader: Any, body: Any) -> list[IgnoredField]:
    """Return at most ten fields of a body that its serializer ignores.

    Characters that a header cannot contain are percent-encoded.
    """
    return [
        IgnoredField(quote(path, safe=".[]_-")[:LONGEST], spelling.similar_name(name, missing))
        for path, name, missing in islice(_unknown_fields(reader, body, ""), MAXIMUM)
    ]


def headers(fields: Iterable[IgnoredField]) -> dict[str, str]:
    """Return headers that name the ignored fields and the fields that were meant, as in `custmer=customer`."""
    named = {
        HEADER: ",".join(field.path for field in fields),
        SUGGESTIONS_HEADER: ",".join(f"{field.path}={field.meant}" for field in fields if field.meant),
    }
    return {name: value for name, value in named.items() if value}


def _unknown_fields(reader: Any, body: Any, prefix: str) -> Iterator[tuple[str, str, set[str]]]:
    """Yield the path and the name of each unknown field, with the names that are possible in its object."""
    if isinstance(reader, ListSerializer | ListField) and isinstance(body, list):
        for index, item in enumerate(body):
            yield from _unknown_fields(reader.child, item, f"{prefix}[{index}]")
    elif isinstance(reader, Serializer) and isinstance(body, Mapping):
        for name, value in body.items():
            path = f"{prefix}.{name}" if prefix else name
            if name in reader.fields:
                yield from _unknown_fields(reader.fields[name], value, path)
            else:
                yield path, name, set(reader.fields).difference(body)
