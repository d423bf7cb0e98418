"""A sign-in's end, said before it comes and put off by a tap (rule sign_in.said)."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.safestring import SafeString

from config.lib import clock
from hosted_page import payer, summary
from hosted_page.payment_target import PaymentTarget, for_form


def on(target: PaymentTarget) -> dict[str, Any]:
    """Return when the sign-in that begins or goes on now will end, and where to put it off."""
    return {"action": target.address("stay"), "seconds": payer.LIFE, "until": _until(target)}


def _until(target: PaymentTarget) -> SafeString:
    until = _now(target) + timedelta(seconds=payer.LIFE)
    return summary.hour(until, summary.zone_of(target.checkout))


def _now(target: PaymentTarget) -> datetime:
    """Return the time at which the order was read, if it was read with one, as a share's is not."""
    read_at: datetime | None = getattr(target.checkout, "read_at", None)
    return read_at or clock.now()


@for_form
def stay(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Sign the person in for as long again, if they still are."""
    is_in = target.payer_of(request) is not None
    answer = JsonResponse({"until": _until(target), "lasts": payer.LIFE}, status=200 if is_in else 403)
    payer.prolong(request, answer, target.subject)
    return answer
