"""Response headers for caches, devices and referrers, and support for forms that send `Origin: null`."""

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config.lib import redaction
from config.lib.web import deprecated
from payments import provider

DENIED_FEATURES = (
    "accelerometer",
    "autoplay",
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
PAYER_PREFIX, STATIC_PREFIX = "/pay", "/static/"


class HeadersMiddleware(MiddlewareMixin):
    """Middleware that sets the headers of every response.

    - No cache may store a response, unless its view allows it (rule api.no_store).
    - No page may use a device, such as the camera. Static files do not need this header of 230 bytes.
    - Our own origin has the permission `payment`. On payers' pages, the provider's origins that collect card
      details have this permission too.
    - A page whose address is a secret does not send a referrer, not even to our own pages.
    - The response to a deprecated call has headers that announce the deprecation (rule docs.deprecation).
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Cache-Control", "no-store")
        if not request.path.startswith(STATIC_PREFIX):
            response["Permissions-Policy"] = _permissions_policy_of(request.path)
        for name, value in deprecated.deprecation_headers(request.method or "", request.path).items():
            response[name] = value
        if redaction.is_secret_path(request.path):
            response["Referrer-Policy"] = "no-referrer"
        return response


def _permissions_policy_of(path: str) -> str:
    payment_origins = provider.current_provider().payment_origins if path.startswith(PAYER_PREFIX) else ()
    origins = "".join(f' "{origin}"' for origin in payment_origins)
    return ", ".join([*(f"{feature}=()" for feature in DENIED_FEATURES), f"payment=(self{origins})"])


class NullOriginMiddleware(MiddlewareMixin):
    """Middleware that replaces `Origin: null` with our own origin, so that only the CSRF token is checked.

    Forms on pages without a referrer send `Origin: null`. Under https, the CSRF token is enough: only our
    host can set its cookie (`__Host-`), and a form on a different site does not send this cookie (SameSite).
    """

    def process_request(self, request: HttpRequest) -> None:
        is_form_of_ours = request.path.startswith(PAYER_PREFIX) or redaction.is_secret_path(request.path)
        if is_form_of_ours and request.META.get("HTTP_ORIGIN") == "null":
            request.META["HTTP_ORIGIN"] = f"{request.scheme}://{request.get_host()}"
