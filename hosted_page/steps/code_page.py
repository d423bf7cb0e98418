"""The page that asks for a sign-in code, and what it shares with the page that asks for a number."""

from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from hosted_page import payer, remembered_browsers, rendering, summary
from hosted_page.models import SignInCode
from hosted_page.payment_target import SIGN_IN, PaymentTarget
from hosted_page.sms import limits
from hosted_page.steps import codes
from hosted_page.steps.phone import mask_number


def show_code(
    request: HttpRequest, target: PaymentTarget, waiting_code: SignInCode, *, error: str = "", limit: str = ""
) -> HttpResponse:
    """Ask for the code. `error` is about the digits. `limit` says why no new code was sent."""
    context = {
        "action": target.address("code"),
        **{"error": error, "limit": limit},
        "masked_phone": mask_number(waiting_code.phone),
        "way": "lost" if waiting_code.is_lost else "sent" if target.is_payable else "perhaps",
        "resend_action": target.address("resend"),
        "works_until": summary.short_time(waiting_code.expires_at, summary.zone_of(target.checkout)),
        "resend_in": _seconds_to_resend(waiting_code),
        **{"change_url": change_url(target)} | paid_context(target) | _remember_context(request, target),
        "shown_code": payer.shown_code(request) if settings.SANDBOX else "",
    }
    return rendering.render_page(request, target, "code", context, status=422 if error or limit else 200)


def show_last_code(
    request: HttpRequest, target: PaymentTarget, phone: str, limit: str
) -> HttpResponse | None:
    """Ask for the last code that was sent to this number, and say why no new code was sent (`limit`).

    Return None if there is no such code, or if it cannot be entered any more.
    """
    waiting_code = codes.waiting_code(target.subject, payer.browser_of(request))
    if waiting_code is None or waiting_code.phone != phone or not codes.can_be_tried(waiting_code):
        return None
    return show_code(request, target, waiting_code, limit=limit)


def _remember_context(request: HttpRequest, target: PaymentTarget) -> dict[str, Any]:
    """Return the context of the checkbox with which a payer allows the service to remember the browser."""
    return {
        "may_remember": target.is_payable,
        "is_ticked": remembered_browsers.REMEMBER in request.POST,
    }


def _seconds_to_resend(waiting_code: SignInCode) -> int:
    age = (waiting_code.read_at - waiting_code.created_at).total_seconds()
    return max(0, round(limits.CODE_INTERVAL.total_seconds() - age))


def change_url(target: PaymentTarget) -> str:
    """Return the address of the page on which the person can enter a different number."""
    url = f"{target.address()}{'?' if target.share else '&'}change=1"
    return url if target.is_payable else f"{url}&{SIGN_IN}=1"


def paid_context(target: PaymentTarget) -> dict[str, Any]:
    """Return the context values that differ for a person who returns to a paid order or share.

    The page of a paid order has a link to the shop, but no cancel link. At a group link, the page does not
    show the amount of a paid share, because anyone with the group link can open that page.
    """
    if not target.is_only_for_payer:
        return {}
    if target.share is None:
        return {"cancel_url_path": "", "back_url": target.checkout.return_url}
    return {"order": replace(summary.summary_of(target), due="")} if target.group else {}
