"""What every answer tells the browser about itself, whoever has made it."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from config.lib import redaction
from payments import provider

NOBODY = (
    "accelerometer",
    "autoplay",
    "bluetooth",
    "camera",
    "display-capture",
    "encrypted-media",
    "geolocation",
    "gyroscope",
    "hid",
    "magnetometer",
    "microphone",
    "midi",
    "serial",
    "usb",
    "xr-spatial-tracking",
)
PAYERS = "/pay"


class HeadersMiddleware:
    """Allows a browser no device, and a payment to us and to those who ask for cards on our pages.

    An address that is a secret is told to no page that is reached from there, not even to ours.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response["Permissions-Policy"] = _policy(_asking_for_cards(request))
        if redaction.is_secret(request.path):
            response["Referrer-Policy"] = "no-referrer"
        return response


def _asking_for_cards(request: HttpRequest) -> tuple[str, ...]:
    """Return who asks for a card on a page, beside ourselves."""
    return provider.current().payment_origins if request.path.startswith(PAYERS) else ()


def _policy(payment_origins: tuple[str, ...]) -> str:
    origins = "".join(f' "{origin}"' for origin in payment_origins)
    return ", ".join([*(f"{feature}=()" for feature in NOBODY), f"payment=(self{origins})"])


class NullOriginMiddleware:
    """A page that is no referrer calls the origin of its forms `null`: there the token of the form alone decides.

    Nobody but us can set the token's cookie where https is (`__Host-`), and another site's form does not send it
    (SameSite).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_form_of_ours = request.path.startswith(PAYERS) or redaction.is_secret(request.path)
        if is_form_of_ours and request.META.get("HTTP_ORIGIN") == "null":
            request.META["HTTP_ORIGIN"] = f"{request.scheme}://{request.get_host()}"
        return self._get_response(request)
