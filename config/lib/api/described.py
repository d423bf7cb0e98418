"""Descriptions of fields and endpoints for the API's document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rest_framework.serializers import Serializer
from rest_framework.views import APIView

Body = type[Serializer[Any]]


@runtime_checkable
class DescribedField(Protocol):
    """A serializer field that describes itself. If it has an `object_name`, its schema has this name."""

    def schema(self) -> dict[str, Any]:
        """Return the field's schema, without its description, its default and whether it can be null."""


class DescribedResponse(NamedTuple):
    """A 2xx response: a sentence about it, and the serializer of its `data`, or None for an empty body."""

    sentence: str
    body: Body | None = None


@dataclass(frozen=True)
class DescribedOperation:
    """One method of one address. `codes` lists its error codes, except those that every call can return."""

    name: str
    summary: str
    description: str
    answers: Mapping[int, DescribedResponse]
    body: Body | None = None
    query: Body | None = None
    codes: tuple[str, ...] = ()


# An app's endpoints, by view and method, in the order in which the document lists them.
DescribedOperations = Mapping[tuple[type[APIView], str], DescribedOperation]
