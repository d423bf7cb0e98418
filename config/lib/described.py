"""Descriptions of endpoints for the API's document, in addition to what their serializers say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rest_framework.serializers import Serializer
from rest_framework.views import APIView

Body = type[Serializer[Any]]


class DescribedResponse(NamedTuple):
    """A 2xx response: a sentence, and the name of the shape under `data`, or None for an empty body."""

    sentence: str
    shape: str | None = None


@dataclass(frozen=True)
class DescribedOperation:
    """One method of one address. `codes` are its own error codes, in addition to those of every call."""

    name: str
    summary: str
    description: str
    answers: Mapping[int, DescribedResponse]
    takes: Body | None = None
    query: Body | None = None
    codes: tuple[str, ...] = ()


# An app's endpoints by view and method, in the order of the document.
DescribedOperations = Mapping[tuple[type[APIView], str], DescribedOperation]
