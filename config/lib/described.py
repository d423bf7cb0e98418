"""What the API's document says of an endpoint, and its serializers do not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rest_framework.serializers import Serializer
from rest_framework.views import APIView

Body = type[Serializer[Any]]


class DescribedResponse(NamedTuple):
    """What a 2xx says: a sentence, and the name of the shape under `data`; None for an empty body."""

    sentence: str
    shape: str | None = None


@dataclass(frozen=True)
class DescribedOperation:
    """One method of one address. `codes` are its own rows of the error table, beside those of every call."""

    name: str
    summary: str
    description: str
    answers: Mapping[int, DescribedResponse]
    takes: Body | None = None
    query: Body | None = None
    codes: tuple[str, ...] = ()


# An app's endpoints in the order of reading, by view and method.
DescribedOperations = Mapping[tuple[type[APIView], str], DescribedOperation]
