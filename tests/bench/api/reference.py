"""The reference for all measurements: a bare Django view with one select.

It is Django's own WSGI handler in the same process, without middleware. It resolves an address in this
module's URL conf to a view that reads one row by its primary key through the ORM and answers JSON. It uses
the same settings and request signals as the application, and a connection pool as Django makes it, with its
health checks. The difference is therefore what the application adds, or saves.
"""

from typing import Any
from uuid import UUID

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, JsonResponse
from django.test import override_settings
from django.urls import path

from payments.models import Merchant


def view(request: HttpRequest, merchant_uuid: UUID) -> JsonResponse:
    merchant = Merchant.objects.using(ALIAS).get(pk=merchant_uuid)
    return JsonResponse({"id": merchant.pk, "name": merchant.name})


ALIAS = "bare"
DJANGOS_OWN = {"ENGINE": "django.db.backends.postgresql", "CONN_HEALTH_CHECKS": True}
urlpatterns = [path("bare/<uuid:merchant_uuid>", view)]


class _BareRequest(WSGIRequest):
    urlconf = __name__


class BareHandler(WSGIHandler):
    """The handler of this module's addresses, without middleware."""

    request_class = _BareRequest

    def __init__(self) -> None:
        _connect_anew()
        with override_settings(MIDDLEWARE=[]):
            super().__init__()


def _connect_anew() -> None:
    """Give the view its own pool on the database that the application uses now."""
    if ALIAS in connections.databases:
        former: Any = connections[ALIAS]
        former.close()
        former.close_pool()
        del connections[ALIAS]
    connections.databases[ALIAS] = connections[DEFAULT_DB_ALIAS].settings_dict | DJANGOS_OWN
