"""The schemas of our own serializer fields and of our authentication in the API's document."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension

from config.lib import fields

# Not blank, without control characters.
PRINTABLE = r"^(?=.*\S)[^\u0000-\u001F\u007F-\u009F]*$"
WRITTEN_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
Schema = dict[str, Any]


class TextSchema(OpenApiSerializerFieldExtension):
    target_class = fields.Text
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        return {"type": "string", **_lengths(self.target), "pattern": PRINTABLE}


class OneOfSchema(OpenApiSerializerFieldExtension):
    target_class = fields.OneOf
    priority = 1

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        return {"type": "string", "enum": list(self.target.choices)}


class ReturnUrlSchema(OpenApiSerializerFieldExtension):
    target_class = fields.ReturnUrl
    priority = 1

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        schemes = "https?" if settings.LOCAL else "https"
        return {
            "type": "string",
            "format": "uri",
            **_lengths(self.target),
            "pattern": rf"^{schemes}://[^\s\\]+$",
        }


class CategorySchema(OpenApiSerializerFieldExtension):
    target_class = "checkout.api.serializers.Category"
    priority = 1

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        return {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"}


class CustomDataSchema(OpenApiSerializerFieldExtension):
    target_class = "checkout.api.serializers.CustomData"

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        return {"type": "object", "additionalProperties": True, "maxProperties": 50}


class IntegerSchema(OpenApiSerializerFieldExtension):
    target_class = fields.Integer
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        return {"type": "integer", "minimum": self.target.minimum, "maximum": self.target.maximum}


class BooleanSchema(OpenApiSerializerFieldExtension):
    target_class = fields.Boolean

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        return {"type": "boolean"}


class TimestampSchema(OpenApiSerializerFieldExtension):
    """A timestamp as we read it, with any offset; `written_time` is what we write."""

    target_class = fields.Timestamp

    def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
        return {"type": "string", "format": "date-time"}


class BearerScheme(OpenApiAuthenticationExtension):
    """Client credentials; each operation names the scope that its view requires."""

    target_class = "config.merchant_api.BearerAuthentication"
    name = "oauth2"

    def get_security_requirement(self, auto_schema: Any) -> dict[str, list[Any]]:
        return {self.name: [auto_schema.view.scopes[auto_schema.method]]}

    def get_security_definition(self, auto_schema: Any) -> Schema:
        flow = {"tokenUrl": f"{settings.BASE_URL}/oauth/token", "scopes": dict(settings.SCOPES)}
        return {
            "type": "oauth2",
            "description": "Send the access token as `Authorization: Bearer <ACCESS_TOKEN>`.",
            "flows": {"clientCredentials": flow},
        }


def written_time() -> Schema:
    """Return the schema of a timestamp as we write it: UTC, with exactly three decimals."""
    return {"type": "string", "format": "date-time", "pattern": WRITTEN_TIME}


def _lengths(field: Any) -> Schema:
    return {"minLength": field.minimum, "maxLength": field.maximum}
