"""Unknown fields of a request's body, which the API ignores. Rule api.unknown_fields."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from rest_framework.fields import ListField
from rest_framework.serializers import ListSerializer, Serializer

MAXIMUM = 10
LONGEST = 60  # characters of a path
HEADER = "X-Ignored-Fields"


def ignored_paths(reader: Any, body: Any) -> list[str]:
    """Return the paths of at most ten fields of a body that its serializer ignores, such as `items[0].colour`.

    Characters that a header cannot contain are percent-encoded.
    """
    return [quote(path, safe=".[]_-")[:LONGEST] for path in islice(_paths(reader, body, ""), MAXIMUM)]


def _paths(reader: Any, body: Any, prefix: str) -> Iterator[str]:
    if isinstance(reader, ListSerializer | ListField) and isinstance(body, list):
        for index, item in enumerate(body):
            yield from _paths(reader.child, item, f"{prefix}[{index}]")
    elif isinstance(reader, Serializer) and isinstance(body, Mapping):
        for name, value in body.items():
            path = f"{prefix}.{name}" if prefix else name
            if name in reader.fields:
                yield from _paths(reader.fields[name], value, path)
            else:
                yield path
