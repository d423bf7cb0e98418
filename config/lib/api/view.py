"""The base class of the merchant API's views."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent
from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.serializers import Serializer, ValidationError
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from config.lib.api import ignored_fields
from config.lib.api.fields import Query
from config.lib.api.ignored_fields import IgnoredField
from config.lib.web import methods


class ApiView(APIView):
    """A view that reads only the query parameters that it declares, and refuses all others.

    `queries` maps each method to the serializer of its query string. `query` has the request's parameters. In
    `local` and `sandbox`, `ignored` has the body's unknown fields, and the response headers name them too.
    """

    http_method_names = ["get", "head", "post", "delete"]  # all methods that the header `Allow` can name
    queries: ClassVar[Mapping[str, type[Query]]] = {}
    query: Mapping[str, Any]
    ignored: Sequence[IgnoredField] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in self.allowed_methods:  # any other method gets 405, even with unknown parameters
            self.take_query(request)

    def take_query(self, request: Request) -> None:
        """Read the query string into `query`. Raises ValidationError."""
        kind = self.queries.get(methods.effective_method(request), Query)
        parameters = _query_parameters(request, kind)
        if kind is Query and not parameters:
            self.query = {}
            return
        reader = kind(data=parameters)
        reader.is_valid(raise_exception=True)
        self.query = reader.validated_data

    def body(self, kind: type[Serializer[Any]], **context: Any) -> dict[str, Any]:
        """Return the fields of the request's body, as the serializer `kind` reads them. Raises ValidationError."""
        if settings.SANDBOX:
            self.ignored = ignored_fields.ignored_fields(kind(context=context), self.request.data)
        return read_body(kind, self.request.data, context)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the headers that name the ignored fields. Rule api.unknown_fields."""
        finished = super().finalize_response(request, response, *args, **kwargs)
        for name, value in ignored_fields.headers(self.ignored).items():
            finished[name] = value
        return finished


def _query_parameters(request: Request, kind: type[Query]) -> QueryDict:
    """Return the parameters of the query string.

    Raises ValidationError if there are more parameters than Django's limit, which is far above the number
    that any call accepts. The error does not name the parameters, because it would need a sentence for each
    of them.
    """
    try:
        return request.query_params
    except TooManyFieldsSent:
        message = f"The URL has too many query parameters. {kind().accepted_parameters}"
        raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [message]}) from None


def read_body(kind: type[Serializer[Any]], data: Any, context: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a body, as the serializer `kind` reads them. Raises ValidationError."""
    reader = kind(data=data, context=context)
    reader.is_valid(raise_exception=True)
    fields: dict[str, Any] = reader.validated_data
    return fields
