"""Shows that a sign-in is about to end, with a button that extends it (rule sign_in.said)."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.safestring import SafeString

from config.lib import clock
from hosted_page import payer, summary
from hosted_page.payment_target import AUTOMATIC, PaymentTarget, for_form, wants_part


def extension_notice(request: HttpRequest, target: PaymentTarget) -> dict[str, Any]:
    """Return the notice for a page that extends the sign-in.

    The notice says when the sign-in ends, and how to extend it again.
    """
    return _notice_context(request, target, payer.seconds_left(request, target.subject, prolonged=True))


def notice_on_status_page(request: HttpRequest, target: PaymentTarget) -> dict[str, Any] | None:
    """Return the notice for the page of an order or share that is paid or in progress.

    Return None if no one is signed in. If the page has reloaded itself, the sign-in is not extended, because
    the person was not active.
    """
    if not _may_stay_signed_in(request, target):
        return None
    seconds = payer.seconds_left(request, target.subject, prolonged=not is_automatic_reload(request))
    return _notice_context(request, target, seconds) | {"again": target.sign_in_path()}


def is_automatic_reload(request: HttpRequest) -> bool:
    """Return whether the page has reloaded itself, with or without its script."""
    return AUTOMATIC in request.GET or wants_part(request)


def prolong(request: HttpRequest, response: HttpResponse, target: PaymentTarget) -> HttpResponse:
    """Extend the sign-in of a person who has opened the page. Return the response.

    If the page has reloaded itself, the sign-in is not extended. Rule sign_in.session.
    """
    if _may_stay_signed_in(request, target) and not is_automatic_reload(request):
        payer.prolong(request, response, target.subject)
    return response


def _notice_context(request: HttpRequest, target: PaymentTarget, seconds: int) -> dict[str, Any]:
    """Return the contents of the notice.

    If the two-hour limit ends the sign-in within fifteen minutes, `is_last` is true and hides the button.
    """
    return {
        "action": target.address("stay"),
        "seconds": seconds,
        "until": _format_end(target, seconds),
        "is_last": seconds >= payer.seconds_left(request, target.subject, prolonged=True) < payer.LIFE,
    }


def _may_stay_signed_in(request: HttpRequest, target: PaymentTarget) -> bool:
    """Return whether the signed-in person may pay the target, has paid the share, or is the order's lead."""
    customer_uuid = payer.customer_of(request, target.subject)
    owner_uuid = target.paid_by_uuid if target.share else target.checkout.lead_id
    return target.payer_of(request) is not None or (customer_uuid is not None and customer_uuid == owner_uuid)


def _format_end(target: PaymentTarget, seconds: int) -> SafeString:
    return summary.short_time(
        _read_time(target) + timedelta(seconds=seconds), summary.zone_of(target.checkout)
    )


def _read_time(target: PaymentTarget) -> datetime:
    """Return when the order was read from the database, or the current time if this is not known."""
    read_at: datetime | None = getattr(target.checkout, "read_at", None)
    return read_at or clock.now()


@for_form
def extend_sign_in(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Extend the sign-in of a person who is still signed in, and return when it ends.

    Return 403 if no one is signed in.
    """
    if not _may_stay_signed_in(request, target):
        return JsonResponse({}, status=403)
    notice = extension_notice(request, target)
    keys = {"until": "until", "lasts": "seconds", "is_last": "is_last"}
    response = JsonResponse({name: notice[key] for name, key in keys.items()})
    payer.prolong(request, response, target.subject)
    return response
