"""A sign-in's end, said before it comes and put off by a tap (rule sign_in.said)."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.safestring import SafeString

from config.lib import clock
from hosted_page import payer, rendering, summary
from hosted_page.payment_target import LOOKS, PaymentTarget, for_form


def on(target: PaymentTarget) -> dict[str, Any]:
    """Return when the sign-in that begins or goes on now will end, and where to put it off."""
    return _said(target, payer.LIFE)


def beside(request: HttpRequest, target: PaymentTarget) -> dict[str, Any] | None:
    """Return when the sign-in ends that a page of what is paid, or on its way, is shown to; None if nobody's is.

    A page that has loaded itself anew puts nothing off: that is no person's doing.
    """
    if not _is_in(request, target):
        return None
    seconds = payer.seconds_left(request, target.subject) if looks(request) else payer.LIFE
    return _said(target, seconds) | {"again": target.way_back()}


def looks(request: HttpRequest) -> bool:
    """Whether the page itself looks at what is true, by its script or without one."""
    return LOOKS in request.GET or rendering.wants_part(request)


def prolong(request: HttpRequest, response: HttpResponse, target: PaymentTarget) -> None:
    """Put the end off for who is signed in and has opened the page; rule sign_in.session."""
    if _is_in(request, target) and not looks(request):
        payer.prolong(request, response, target.subject)


def _said(target: PaymentTarget, seconds: int) -> dict[str, Any]:
    return {"action": target.address("stay"), "seconds": seconds, "until": _until(target, seconds)}


def _is_in(request: HttpRequest, target: PaymentTarget) -> bool:
    """Whether somebody is signed in here who may pay this, has paid it, or leads the order."""
    person = payer.customer_of(request, target.subject)
    theirs = target.paid_by_uuid if target.share else target.checkout.lead_id
    return target.payer_of(request) is not None or (person is not None and person == theirs)


def _until(target: PaymentTarget, seconds: int) -> SafeString:
    return summary.hour(_now(target) + timedelta(seconds=seconds), summary.zone_of(target.checkout))


def _now(target: PaymentTarget) -> datetime:
    """Return the time at which the order was read, if it was read with one, as a share's is not."""
    read_at: datetime | None = getattr(target.checkout, "read_at", None)
    return read_at or clock.now()


@for_form
def stay(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Sign the person in for as long again, if they still are."""
    is_in = _is_in(request, target)
    said = {"until": _until(target, payer.LIFE), "lasts": payer.LIFE}
    answer = JsonResponse(said, status=200 if is_in else 403)
    payer.prolong(request, answer, target.subject)
    return answer
