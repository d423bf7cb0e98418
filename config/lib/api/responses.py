"""Serializers of what the API sends. One declaration writes the response and describes it in the API's document.

Their fields are DRF's, or those of `config.lib.api.fields` where the limits of a request's field apply, or the three
below.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from typing import Any, ClassVar

from rest_framework.serializers import Field, Serializer

from config.lib import clock

Schema = dict[str, Any]
_WRITTEN_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"


class Out(Serializer[Any]):
    """The base serializer of an object that the API sends.

    The document calls it by its class's name without `Out`. If an object has fields only in some states,
    `ALWAYS` and `SOMETIMES` name these states (rule read.fields), and the row has a `status`.
    """

    ALWAYS: ClassVar[dict[str, tuple[Any, ...]]] = {}
    SOMETIMES: ClassVar[dict[str, tuple[Any, ...]]] = {}

    @classmethod
    def write(cls, row: Any) -> dict[str, Any]:
        """Return the object for a row, or for a mapping, as it is sent."""
        return _shared(cls).to_representation(row)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        written = super().to_representation(instance)
        for name in {**self.ALWAYS, **self.SOMETIMES}:
            is_sent = instance.status in self.ALWAYS.get(name, ()) or (
                written[name] and instance.status in self.SOMETIMES.get(name, ())
            )
            if not is_sent:
                del written[name]
        return written


@cache
def _shared(kind: type[Out]) -> Out:
    """Return the one instance that writes all rows. A new instance copies each field, which costs more than a row."""
    return kind()


class Time(Field[datetime, Any, str | None, Any]):
    """A timestamp in UTC with exactly three decimals (rule api.timestamps). Its value can be PostgreSQL's JSON."""

    def to_representation(self, value: datetime | str) -> str | None:
        return clock.iso(datetime.fromisoformat(value) if isinstance(value, str) else value)

    def schema(self) -> Schema:
        return {"type": "string", "format": "date-time", "pattern": _WRITTEN_TIME}


class Known(Field[str, Any, str, Any]):
    """One of the words that are known today. More words can be added, so the document does not close the list."""

    def __init__(self, words: Iterable[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.words = [str(word) for word in words]

    def to_representation(self, value: str) -> str:
        return str(value)

    def schema(self) -> Schema:
        return {"type": "string", "examples": self.words, "x-known-values": self.words}


class Constant(Known):
    """A word that is always the same."""

    def __init__(self, word: str, **kwargs: Any) -> None:
        super().__init__([word], **kwargs)

    def schema(self) -> Schema:
        return {"type": "string", "enum": self.words}


class Computed(Field[Any, Any, Any, Any]):
    """A field whose value a function of the row returns. `kind` is the field or object that writes the value."""

    def __init__(self, compute: Callable[[Any], Any], kind: Field[Any, Any, Any, Any], **kwargs: Any) -> None:
        super().__init__(source="*", **kwargs)
        self.compute, self.kind = compute, kind

    def to_representation(self, value: Any) -> Any:
        computed = self.compute(value)
        return None if computed is None else self.kind.to_representation(computed)
