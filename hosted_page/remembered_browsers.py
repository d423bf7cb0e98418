"""Remembers browsers. If the person agrees, a browser needs no new code for 30 days (rules known.*)."""

import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from checkout.models import Customer
from config.lib import batches, clock, crypto
from hosted_page import payer
from hosted_page.models import KnownBrowser

LIFE = timedelta(days=30)  # counted from the code that verified the number; never extended
MAX_BROWSERS = 5  # per number; a further browser replaces the oldest one
REMEMBER = "remember"  # name of the checkbox in the form
TOKEN = "known"


def find_remembered(request: HttpRequest) -> KnownBrowser | None:
    """Return this browser's row, or None if it is not remembered or was remembered over thirty days ago."""
    token = request.COOKIES.get(payer.cookie_name(TOKEN), "")
    if not token:
        return None
    rows = KnownBrowser.objects.filter(token_digest=crypto.digest(token), proven_at__gt=Now() - LIFE)
    return rows.first()


def remember(request: HttpRequest, response: HttpResponse, person: Customer) -> None:
    """If the checkbox is ticked, remember this browser with the number that a code has just verified."""
    if REMEMBER not in request.POST:
        return
    token = secrets.token_urlsafe(32)
    with transaction.atomic(durable=True):
        customer = (
            Customer.objects.select_for_update(no_key=True).filter(pk=person.pk, erased_at=None).first()
        )
        if customer is None or not customer.phone:
            return
        _delete_remembered(request)
        digest = crypto.digest(token)
        KnownBrowser.objects.create(token_digest=digest, phone=customer.phone, proven_at=clock.now())
        rows = KnownBrowser.objects.filter(phone=customer.phone).order_by("-proven_at")
        older = list(rows.values_list("pk", flat=True)[MAX_BROWSERS:])
        KnownBrowser.objects.filter(pk__in=older).delete()
    payer.set_cookie(response, payer.cookie_name(TOKEN), token, int(LIFE.total_seconds()))


def forget_browser(request: HttpRequest, response: HttpResponse) -> None:
    """Stop remembering this browser: delete its row and its cookie."""
    _delete_remembered(request)
    response.delete_cookie(payer.cookie_name(TOKEN), samesite="Lax")


def _delete_remembered(request: HttpRequest) -> None:
    if token := request.COOKIES.get(payer.cookie_name(TOKEN), ""):
        KnownBrowser.objects.filter(token_digest=crypto.digest(token)).delete()


def delete_old() -> None:
    """Delete the browsers that were remembered over thirty days ago."""
    batches.delete(KnownBrowser.objects.filter(pk__lt=clock.first_id(clock.now() - LIFE - timedelta(days=1))))
