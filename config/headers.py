"""Headers that every response gets (Permissions-Policy, Referrer-Policy), and forms that send `Origin: null`."""

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
    """Allows pages no device, and payments only to us and to the origins that ask for cards on payers' pages.

    A page whose address is a secret sends no referrer, not even to our own pages.
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
    """Return the origins, beside our own, that ask for a card on this page."""
    return provider.current().payment_origins if request.path.startswith(PAYERS) else ()


def _policy(payment_origins: tuple[str, ...]) -> str:
    origins = "".join(f' "{origin}"' for origin in payment_origins)
    return ", ".join([*(f"{feature}=()" for feature in NOBODY), f"payment=(self{origins})"])


class NullOriginMiddleware:
    """Takes `Origin: null`, which forms of pages without a referrer send, for ours: the CSRF token alone decides.

    Under https nobody but us can set the token's cookie (`__Host-`), and another site's form does not send it
    (SameSite).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_form_of_ours = request.path.startswith(PAYERS) or redaction.is_secret(request.path)
        if is_form_of_ours and request.META.get("HTTP_ORIGIN") == "null":
            request.META["HTTP_ORIGIN"] = f"{request.scheme}://{request.get_host()}"
        return self._get_response(request)
