"""The reference for all measurements: a bare Django view with one select.

The view runs in Django's WSGI handler in the same process, without middleware. This module's URLconf leads to
the view, which reads one row by its primary key through the ORM and returns JSON. The handler has the same
settings, request signals and connections as the application. Therefore, the difference between the application
and the view is the cost of our code.
"""

from uuid import UUID

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest, JsonResponse
from django.test import override_settings
from django.urls import path

from payments.models import Merchant


def view(request: HttpRequest, merchant_uuid: UUID) -> JsonResponse:
    merchant = Merchant.objects.get(pk=merchant_uuid)
    return JsonResponse({"id": merchant.pk, "name": merchant.name})


urlpatterns = [path("bare/<uuid:merchant_uuid>", view)]


class _BareRequest(WSGIRequest):
    urlconf = __name__


class BareHandler(WSGIHandler):
    """A WSGI handler for the URLs of this module, without middleware."""

    request_class = _BareRequest

    def __init__(self) -> None:
        with override_settings(MIDDLEWARE=[]):
            super().__init__()
