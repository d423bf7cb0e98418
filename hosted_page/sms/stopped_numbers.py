"""Lets the owner of a phone number stop all texts except codes (rule sms.stop).

Each invitation and reminder contains a link for stopping texts. The link must be short, so it contains only half of the
number's digest, and a signature. The link works while the key for the digest and the signature is configured. The
service does not store the stopped phone numbers, so it cannot calculate their digests with a new key.
"""

import base64
import binascii
from collections.abc import Sequence

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_http_methods

from config.lib import clock, crypto
from hosted_page import language
from hosted_page.models import SmsStop

DIGEST_BYTES, SIGNATURE_BYTES = 15, 9


def stop_link(phone_digest: str) -> str:
    """Return the URL at which the number with this digest can stop texts."""
    half_digest = bytes.fromhex(phone_digest)[:DIGEST_BYTES]
    token = base64.urlsafe_b64encode(half_digest + _sign(half_digest)[0]).decode()
    return f"{settings.CHECKOUT_PAGE_URL.removesuffix(reverse('pay'))}{reverse('sms_stop', args=[token])}"


def has_stopped(phone_digests: Sequence[str]) -> bool:
    """Return whether the owner of the phone number with these digests has stopped texts."""
    numbers = [_number_of_digest(bytes.fromhex(digest)) for digest in phone_digests]
    return SmsStop.objects.filter(number__in=numbers).exists()


def count_under_former_keys() -> int:
    """Return the number of stops that only a former LOOKUP_KEY can find."""
    first, *former = crypto.lookup_key_marks()
    rows = SmsStop.objects.exclude(key_mark=first)
    # A row without a mark is older than the marks themselves, so it belongs to the oldest key.
    return (rows if former else rows.exclude(key_mark="")).count()


@require_http_methods(["GET", "HEAD", "POST"])
def show_stop_page(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether the phone number in a link should get only codes.

    A POST request stops all other texts, or allows them again.
    """
    number, key_mark = _read_link_token(token)
    if request.method == "POST":
        if "again" in request.POST:
            SmsStop.objects.filter(number=number).delete()
        else:
            defaults = {"key_mark": key_mark, "stopped_at": clock.now()}
            SmsStop.objects.get_or_create(number=number, defaults=defaults)
        return HttpResponseRedirect(request.path, status=303)
    context = {
        "is_stopped": SmsStop.objects.filter(number=number).exists(),
        "languages": language.other_languages(),
        "here": request.path,
    }
    return render(request, "hosted_page/stop.html", context)


def _read_link_token(token: str) -> tuple[str, str]:
    """Return the half digest of the number in a link, as the database stores it, and the mark of its key.

    Raises Http404 if the signature is invalid.
    """
    try:
        decoded = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise Http404 from None
    half_digest = decoded[:DIGEST_BYTES]
    for key_mark, signature in zip(crypto.lookup_key_marks(), _sign(half_digest), strict=True):
        if constant_time_compare(decoded[DIGEST_BYTES:], signature):
            return _number_of_digest(half_digest), key_mark
    raise Http404


def _number_of_digest(digest: bytes) -> str:
    return digest[:DIGEST_BYTES].hex()


def _sign(half_digest: bytes) -> list[bytes]:
    """Return the signatures of half a digest, one per key. New links contain the first signature."""
    digests = crypto.keyed_digests("sms stop", half_digest.hex())
    return [bytes.fromhex(digest)[:SIGNATURE_BYTES] for digest in digests]
