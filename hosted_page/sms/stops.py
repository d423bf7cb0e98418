"""Numbers that want no texts but codes any more: each invitation and reminder has a link at which they say so.

A link holds half of the number's digest and a signature of it, so that it is short and works for ever. Rule sms.stop.
"""

import base64
import binascii

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_http_methods

from config.lib import clock, crypto
from hosted_page import language
from hosted_page.models import SmsStop

NAME_BYTES, SIGNATURE_BYTES = 15, 9


def link(phone_digest: str) -> str:
    """Return the URL at which a number that is counted under this digest stops."""
    name = bytes.fromhex(phone_digest)[:NAME_BYTES]
    token = base64.urlsafe_b64encode(name + _signature(name)).decode()
    return f"{settings.CHECKOUT_PAGE_URL.removesuffix(reverse('pay'))}{reverse('sms_stop', args=[token])}"


def has_stopped(phone_digest: str) -> bool:
    """Return whether a number that is counted under this digest has stopped."""
    return SmsStop.objects.filter(number=_number(bytes.fromhex(phone_digest))).exists()


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether the number of a link shall get nothing but codes; a POST stops the rest, or has it come again."""
    number = _named(token)
    if request.method == "POST":
        if "again" in request.POST:
            SmsStop.objects.filter(number=number).delete()
        else:
            SmsStop.objects.get_or_create(number=number, defaults={"stopped_at": clock.now()})
        return HttpResponseRedirect(request.path, status=303)
    context = {
        "is_stopped": SmsStop.objects.filter(number=number).exists(),
        "languages": language.others(),
        "here": request.path,
    }
    return render(request, "hosted_page/stop.html", context)


def _named(token: str) -> str:
    """Return the number that a link is about; 404 for one that we never made."""
    try:
        plain = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise Http404 from None
    name = plain[:NAME_BYTES]
    if len(plain) != NAME_BYTES + SIGNATURE_BYTES or not constant_time_compare(
        plain[NAME_BYTES:], _signature(name)
    ):
        raise Http404
    return _number(name)


def _number(name: bytes) -> str:
    return name[:NAME_BYTES].hex()


def _signature(name: bytes) -> bytes:
    return bytes.fromhex(crypto.keyed_digest("sms stop", name.hex()))[:SIGNATURE_BYTES]
