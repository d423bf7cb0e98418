"""Extensions of drf-spectacular for our serializer fields and our authentication."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema

from config.lib.api.described import DescribedField
from config.lib.api.responses import Computed
from config.openapi import events
from webhooks.api.responses import Envelope

Schema = dict[str, Any]


class FieldSchema(OpenApiSerializerFieldExtension):
    """The schema of a field that describes itself."""

    target_class = DescribedField
    match_subclasses = True

    def get_name(self) -> str | None:
        return getattr(self.target, "object_name", None)

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> Schema:
        schema: Schema = self.target.schema()
        return schema


class ComputedSchema(OpenApiSerializerFieldExtension):
    """The schema of a computed field, which is the schema of the field or serializer that writes its value."""

    target_class = Computed

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> Schema:
        kind = self.target.kind
        schema: Schema = auto_schema._map_serializer_field(kind, direction)
        auto_schema._insert_field_validators(kind, schema)
        return schema


class EnvelopeSchema(OpenApiSerializerFieldExtension):
    """The schema of an event in the feed. Its data can be withheld, and its type can be newer than the document."""

    target_class = Envelope

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> Schema:
        return events.listed_event()


class BearerScheme(OpenApiAuthenticationExtension):
    """OAuth client credentials in the document. Each operation names the scope that its view requires."""

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
