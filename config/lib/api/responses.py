"""Serializers for the API's responses. They write a response, and describe it in the API's document.

The serializers use the fields below and DRF's fields. For a field that requests have too, with the same
limits, they use the class from `config.lib.api.fields`.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from typing import Any, ClassVar

from rest_framework.serializers import Field, Serializer

from config.lib import clock

Schema = dict[str, Any]


class Out(Serializer[Any]):
    """The base serializer of an object that the API sends.

    The API's document uses the name of the class without `Out`. Some fields are sent only if the row's
    `status` is one of certain states (rule read.fields). For each such field, `ALWAYS` lists the states in
    which it is sent even without a value. `SOMETIMES` lists the states in which it is sent only with a value.
    """

    ALWAYS: ClassVar[dict[str, tuple[Any, ...]]] = {}
    SOMETIMES: ClassVar[dict[str, tuple[Any, ...]]] = {}

    @classmethod
    def write(cls, row: Any) -> dict[str, Any]:
        """Return a row or a mapping as the API sends it."""
        return _shared_writer(cls).to_representation(row)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        if not (self.ALWAYS or self.SOMETIMES):
            return super().to_representation(instance)
        written = {}
        for name, field, is_always in _fields_in(self, instance.status):
            value = field.get_attribute(instance)
            if value is not None:
                value = field.to_representation(value)
            if is_always or value:
                written[name] = value
        return written


@cache
def _fields_in(kind: Out, status: str) -> list[tuple[str, Any, bool]]:
    """Return the fields that an object can have in a state. A flag says whether a field is sent even without a value.

    Only these fields are computed. Computing all fields of each row would make lists a quarter slower.
    """
    found = []
    for name, field in kind.fields.items():
        is_limited = name in kind.ALWAYS or name in kind.SOMETIMES
        is_always = not is_limited or status in kind.ALWAYS.get(name, ())
        if is_always or status in kind.SOMETIMES.get(name, ()):
            found.append((name, field, is_always))
    return found


@cache
def _shared_writer(kind: type[Out]) -> Out:
    """Return the instance that writes all rows of a kind.

    A new instance copies all its fields, which takes longer than writing a row.
    """
    return kind()


class Time(Field[datetime, Any, str | None, Any]):
    """A timestamp in UTC with exactly three decimals (rule api.timestamps).

    The value is a datetime, or a string in JSON from PostgreSQL.
    """

    def to_representation(self, value: datetime | str) -> str | None:
        return clock.iso(datetime.fromisoformat(value) if isinstance(value, str) else value)

    def schema(self) -> Schema:
        return {"type": "string", "format": "date-time"}


class OpenChoice(Field[str, Any, str, Any]):
    """One of the given words. In the API's document, the list of words is open, because more words can be added.

    Rule api.added_later.
    """

    def __init__(self, words: Iterable[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.words = [str(word) for word in words]

    def to_representation(self, value: str) -> str:
        return str(value)

    def schema(self) -> Schema:
        return {"type": "string", "examples": self.words, "x-known-values": self.words}


class Constant(OpenChoice):
    """A word that never changes."""

    def __init__(self, word: str, **kwargs: Any) -> None:
        super().__init__([word], **kwargs)

    def schema(self) -> Schema:
        return {"type": "string", "enum": self.words}


class Computed(Field[Any, Any, Any, Any]):
    """A field whose value is computed from the row. `kind` is the field or serializer that writes the value."""

    def __init__(self, compute: Callable[[Any], Any], kind: Field[Any, Any, Any, Any], **kwargs: Any) -> None:
        super().__init__(source="*", **kwargs)
        self.compute, self.kind = compute, kind

    def to_representation(self, value: Any) -> Any:
        computed = self.compute(value)
        return None if computed is None else self.kind.to_representation(computed)
