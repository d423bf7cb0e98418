"""Is this process alive, and can it serve? Redis is not asked: nothing that matters is there."""

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse


def livez(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all."""
    return HttpResponse("alive\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """200 while the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return HttpResponse("the database does not answer\n", status=503, content_type="text/plain")
    return HttpResponse("ready\n", content_type="text/plain")
