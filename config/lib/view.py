"""The base of the merchant API's views."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from config.lib.fields import Query


class ApiView(APIView):
    """Reads the query parameters that `queries` names for the method into `query`, and refuses any other."""

    queries: ClassVar[Mapping[str, type[Query]]] = {}
    query: Mapping[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.take_query(request)

    def take_query(self, request: Request) -> None:
        """Read the query string; raises ValidationError."""
        kind = self.queries.get(str(request.method), Query)
        if kind is Query and not request.query_params:
            self.query = {}
            return
        asked = kind(data=request.query_params)
        asked.is_valid(raise_exception=True)
        self.query = asked.validated_data

    def body(self, kind: type[Serializer[Any]], **context: Any) -> dict[str, Any]:
        """Return the fields of the request's body as `kind` reads them; raises ValidationError."""
        sent = kind(data=self.request.data, context=context)
        sent.is_valid(raise_exception=True)
        fields: dict[str, Any] = sent.validated_data
        return fields
