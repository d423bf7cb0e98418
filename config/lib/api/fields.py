"""Strict serializer fields. They accept only JSON's own types, without coercion. Their errors name the remedy."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from rest_framework.exceptions import ErrorDetail
from rest_framework.fields import empty
from rest_framework.serializers import Field, ListField, Serializer, ValidationError
from rest_framework.settings import api_settings

from config.lib import clock
from config.lib.api import spelling
from config.lib.web import hosts, origins

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}")
_PLUS_READ_AS_SPACE = re.compile(r"[^ ]+T[0-9:.,]+ [0-9]{2}:?[0-9]{2}")
_UUID = re.compile(r"(?i:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})")
# Characters that some parsers, but not all, treat as the end of a URL.
_MISREAD_CHARACTERS = re.compile(r"[\s\\]")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_ENDS_IN_A_NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)\.?")
# The API document's patterns for a text without control characters: one that can be blank, and one that cannot.
# Generated clients use the patterns in many regex dialects, and PHP matches them against UTF-8 bytes. They therefore
# have no look-ahead and no `\\u`, and do not exclude the control characters from U+0080 on.
_PRINTABLE = r"^[^\x00-\x1F\x7F]*$"
_NOT_BLANK = r"^[^\x00-\x1F\x7F]*[^\x00-\x1F\x7F\s][^\x00-\x1F\x7F]*$"
MAX_AHEAD = timedelta(seconds=60)  # how far a caller's clock can be ahead of the service's clock
Schema = dict[str, Any]  # the schema of a field in the API's document
# Error texts that every field uses instead of the library's texts.
ERROR_TEXTS: Any = {"required": "Is required.", "null": "Must not be null."}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Body(Serializer[Any]):
    """The base serializer of a request's body, or of an object in it (rule api.unknown_fields)."""

    default_error_messages = {**ERROR_TEXTS, "invalid": "Must be an object."}

    def run_validation(self, data: Any = empty) -> Any:
        """Refuse a null body with the same error text as a body that is not an object."""
        if data is None and self.parent is None:
            raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [self.error_messages["invalid"]]})
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> Any:
        """Validate the object. If a required field was sent under another spelling, the error names that spelling.

        An example of such a spelling is `totalAmount`.
        """
        try:
            return super().to_internal_value(data)
        except ValidationError as error:
            if isinstance(data, Mapping) and isinstance(error.detail, dict):
                spellings = spelling.other_spellings(data, self.fields)
                for name in spellings.keys() & error.detail.keys():
                    words = f"Is required. You sent {spellings[name]}: write {name}."
                    error.detail[name] = [ErrorDetail(words, "required")]
            raise


class Text(Field[str, Any, str, Any]):
    """A string of `minimum` to `maximum` characters, without control characters.

    It is not blank, unless `minimum` is 0. `format` appears only in the API's document. The field's serializer checks
    the format. Rule create.texts.
    """

    default_error_messages = ERROR_TEXTS

    def __init__(self, *, maximum: int = 255, minimum: int = 1, format: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.maximum, self.minimum, self.format = maximum, minimum, format

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise ValidationError("Must be a string.")
        if _CONTROL.search(data):
            raise ValidationError("Must not contain control characters.")
        if len(data.strip()) < self.minimum:
            raise ValidationError("Must not be empty.")
        if len(data) > self.maximum:
            raise ValidationError(f"Must have at most {self.maximum} characters.")
        return data

    def to_representation(self, value: Any) -> str:
        return str(value)

    def schema(self) -> Schema:
        limits = {"minLength": self.minimum, "maxLength": self.maximum}
        pattern = _NOT_BLANK if self.minimum else _PRINTABLE
        form = {"format": self.format} if self.format else {"pattern": pattern}
        return {"type": "string", **limits, **form}


class Integer(Field[int, Any, int, Any]):
    """A JSON integer from `minimum` to `maximum`. It refuses `10.0`, `"10"` and `true` (rule api.integers)."""

    default_error_messages = ERROR_TEXTS
    not_integer = "Must be an integer without quotes or decimals."

    def __init__(self, *, minimum: int, maximum: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.minimum, self.maximum = minimum, maximum

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise ValidationError(self.not_integer)
        self.check(data)
        return data

    def check(self, number: int) -> None:
        """Raise ValidationError if the number is out of bounds."""
        if not self.minimum <= number <= self.maximum:
            raise ValidationError(f"Must be between {self.minimum} and {self.maximum}.")

    def to_representation(self, value: Any) -> int:
        return int(value)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


class MinorUnits(Integer):
    """An amount of money in minor units. For a value such as `56.00`, the error explains the unit."""

    not_integer = "Must be an integer in minor units, without quotes or decimals: 5600 is £56.00."


class Currency(Text):
    """A currency code of three letters. The field's serializer checks whether the currency is in use."""

    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[A-Z]{3}$"}


class Boolean(Field[bool, Any, bool, Any]):
    """JSON's true or false, and no other value."""

    default_error_messages = ERROR_TEXTS

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise ValidationError("Must be true or false.")
        return data

    def schema(self) -> Schema:
        return {"type": "boolean"}


class QueryBoolean(Boolean):
    """A boolean in a query string."""

    def to_internal_value(self, data: Any) -> bool:
        return super().to_internal_value({"true": True, "false": False}.get(data))


class Uuid(Field[UUID, Any, str, Any]):
    """A UUID in a JSON string."""

    default_error_messages = ERROR_TEXTS

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or not _UUID.fullmatch(data):
            raise ValidationError("Must be a UUID, such as 01a20f82-b933-7189-b86c-bb88d2ca0697.")
        return UUID(data)

    def to_representation(self, value: Any) -> str:
        return str(value)

    def schema(self) -> Schema:
        return {"type": "string", "format": "uuid"}


class Timestamp(Field[datetime, Any, str, Any]):
    """An ISO 8601 timestamp with an offset. It becomes an aware datetime in UTC.

    Rules api.timestamps, api.plus.
    """

    default_error_messages = ERROR_TEXTS

    def to_internal_value(self, data: Any) -> datetime:
        example = "Must be a timestamp with an offset, such as 2026-06-01T18:30:00.000Z."
        if isinstance(self.root, Query) and _PLUS_READ_AS_SPACE.fullmatch(data):
            raise ValidationError(
                "The + in this timestamp was read as a space. Write it as %2B, or use UTC with Z."
            )
        if not isinstance(data, str) or not _MOMENT.match(data):
            raise ValidationError(example)
        try:
            at = datetime.fromisoformat(data)
            if at.tzinfo is None:
                raise ValidationError(example)
            return at.astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValidationError(example) from None

    def schema(self) -> Schema:
        return {"type": "string", "format": "date-time"}


def check_not_ahead(query: Mapping[str, Any], name: str) -> None:
    """Raise ValidationError if a feed's start is more than MAX_AHEAD in the future by the service's clock.

    A caller with a wrong clock would otherwise miss all changes until then. `name` is the parameter that has
    the start.
    """
    if name in query and query[name] > (now := clock.now()) + MAX_AHEAD:
        words = f"Must not be in the future. The service’s clock shows {clock.iso(now)}."
        raise ValidationError({name: [words]})


class List(ListField):
    """A list. The field checks its length before its members."""

    default_error_messages = {
        **ERROR_TEXTS,
        "not_a_list": "Must be a list.",
        "empty": "Must not be empty.",
        "min_length": "Must have at least {min_length} members.",
        "max_length": "Must have at most {max_length} members.",
    }

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list):
            self.run_validators(data)
        return super().to_internal_value(data)


class ReturnUrl(Text):
    """An absolute https URL to which a customer is redirected. In `local`, http to loopback is allowed too.

    Rule create.return_urls.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(maximum=2048, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        url = super().to_internal_value(data)
        try:
            parts = origins.split_url(url)
            port = parts.port
        except ValueError:
            raise ValidationError(
                "Must be a valid https URL, such as https://shop.example.com/done."
            ) from None
        if _MISREAD_CHARACTERS.search(url) or "@" in parts.netloc or port == 0 or not parts.hostname:
            raise ValidationError("Must be an https URL without user name, space or backslash.")
        if settings.LOCAL and parts.hostname in _LOOPBACK and parts.scheme in {"http", "https"}:
            return url
        if parts.scheme != "https" or not _is_public(origins.host_of(url)):
            here = f", or here with {hosts.HERE}" if settings.LOCAL else ""
            raise ValidationError(f"Must be an absolute https URL with a public host name{here}.")
        return url

    def schema(self) -> Schema:
        schemes = "https?" if settings.LOCAL else "https"
        limits = {"minLength": self.minimum, "maxLength": self.maximum}
        return {"type": "string", "format": "uri", **limits, "pattern": rf"^{schemes}://[^\s\\]+$"}


def _is_public(host: str) -> bool:
    """Return whether a host is a public name: neither an IP address nor a reserved name.

    Browsers also read `0x7f.1` as an IP address.
    """
    name = host.removesuffix(".")
    return (
        _HOST_NAME.fullmatch(host) is not None
        and "." in name
        and not _ENDS_IN_A_NUMBER.fullmatch(host)
        and not hosts.is_reserved(name)
    )


class Query(Body):
    """The base serializer of query strings. It declares no parameters itself.

    It refuses unknown and repeated parameters. Otherwise, a misspelt filter would be ignored, and the caller
    could not know which of two values applies. Rule api.query.
    """

    @property
    def accepted_parameters(self) -> str:
        """A sentence that lists the parameters that the call accepts."""
        return (
            f"The call accepts {', '.join(self.fields)}."
            if self.fields
            else "The call accepts no parameters."
        )

    def to_internal_value(self, data: Any) -> Any:
        wrong = {name: [self._describe_unknown(name)] for name in data if name not in self.fields}
        wrong |= {name: ["Must be sent only once."] for name in data if len(data.getlist(name)) > 1}
        try:
            values = super().to_internal_value(data.dict())
        except ValidationError as error:
            errors: Any = error.detail
            raise ValidationError(errors | wrong) from None
        if wrong:
            raise ValidationError(wrong)
        return values

    def _describe_unknown(self, name: str) -> str:
        """Return a sentence about an unknown parameter. It suggests the parameter that the caller probably meant."""
        if meant := spelling.similar_name(name, self.fields):
            return f"Is not a parameter of this call. Did you mean {meant}?"
        return f"Is not a parameter of this call. {self.accepted_parameters}"


class QueryInteger(Integer):
    """An integer in a query string, written in plain digits."""

    def to_internal_value(self, data: Any) -> int:
        if not _WHOLE.fullmatch(str(data)):
            raise ValidationError(f"Must be an integer from {self.minimum} to {self.maximum}.")
        return super().to_internal_value(int(data))


class Cursor(Text):
    """A cursor as text. Only the module `cursor` decides whether it is valid."""

    def to_internal_value(self, data: Any) -> str:
        return str(data)


class OneOf(Text):
    """One of a fixed list of words."""

    def __init__(self, choices: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = choices

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            raise ValidationError(self._describe_choices(data))
        return data

    def _describe_choices(self, sent: Any) -> str:
        """Return a sentence that lists the words, and asks whether the caller meant the most similar one."""
        if len(self.choices) == 1:
            return f"Must be {self.choices[0]}."
        meant = spelling.similar_name(sent, self.choices) if isinstance(sent, str) else ""
        return f"Must be one of {', '.join(self.choices)}.{f' Did you mean {meant}?' if meant else ''}"

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.choices)}
