"""Signing in, the same for a lead and for a mate: a mobile number, then the code that was texted."""

from typing import Any

from babel import Locale
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language, ngettext, to_locale
from django.utils.translation import gettext as _

from checkout.models import Customer
from config.lib import address, clock
from hosted_page import box, pages, payer, sign_in, summary, texts
from hosted_page.models import SignInCode
from hosted_page.visit import Visit, asker
from payments.models import Merchant
from payments.switches import AllStopped, MerchantSuspended

SIGN_IN = "sign_in"  # a query: somebody who paid comes back


def show(request: HttpRequest, visit: Visit, wrong: dict[str, str] | None = None) -> HttpResponse:
    """Ask for the code that is on its way, or for a number; `wrong` is what is wrong with the box beside it."""
    waiting = sign_in.waiting(visit.subject, payer.browser_of(request))
    if waiting is None or "change" in request.GET or wrong:
        return show_phone(request, visit, wrong=wrong)
    return _show_code(request, visit, waiting)


def show_phone(
    request: HttpRequest,
    visit: Visit,
    *,
    value: str = "",
    error: str = "",
    wrong: dict[str, str] | None = None,
) -> HttpResponse:
    """Ask for a mobile number; at a pay link, beside what is asked for."""
    context: dict[str, Any] = {"action": visit.address("phone"), "value": value, "error": error}
    if visit.share is not None:
        name, until = asker(visit.checkout), visit.share.expires_at
        context["ask"] = {
            "name": name,
            "initial": name[:1].upper(),
            "until": summary.day(until, visit.checkout),
        }
        context["decline_action"] = visit.address("decline")
        context["box"] = (box.on(request, visit) or {}) | (wrong or {})
    else:
        context["phone_hint"] = _phone_hint(visit.checkout.merchant)
    status = 422 if error or wrong else 200
    return pages.show(request, visit, "share" if visit.share else "phone", context, status=status)


def wrong_number(merchant: Merchant) -> str:
    """Return what is said of what is no mobile number."""
    return _("Enter a mobile number, such as {example}.").format(example=sign_in.example(merchant))


def _phone_hint(merchant: Merchant) -> str:
    if merchant.country == "GB":
        return _("UK number. For another country, start with + and its code.")
    names = Locale.parse(to_locale(get_language() or "en")).territories
    hint = _("Number from {country}. For another country, start with + and its code.")
    return hint.format(country=names.get(merchant.country, merchant.country))


def _show_code(request: HttpRequest, visit: Visit, waiting: SignInCode, *, error: str = "") -> HttpResponse:
    since = (clock.now() - waiting.created_at).total_seconds()
    change_url = f"{visit.address()}{'?' if visit.share else '&'}change=1"
    if not visit.is_payable:
        change_url += f"&{SIGN_IN}=1"
    context: dict[str, Any] = {
        "action": visit.address("code"),
        "error": error,
        "masked_phone": f"•••• {waiting.phone[-4:]}",
        "resend_action": visit.address("resend"),
        "resend_in": max(0, round(texts.GAP.total_seconds() - since)),
        "change_url": change_url,
        "shown_code": payer.shown_code(request) if settings.SANDBOX else "",
    }
    return pages.show(request, visit, "code", context, status=_status(error))


def _status(error: str) -> int:
    return 422 if error else 200


def take_phone(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Send a code to the number that was typed."""
    typed = request.POST.get("phone", "")
    try:
        number = sign_in.parse_phone(typed, visit.checkout.merchant)
    except sign_in.InvalidPhone:
        words = wrong_number(visit.checkout.merchant)
        return show_phone(request, visit, value=typed[:40], error=words)
    return _send_code(request, visit, number, typed)


def resend(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Send a new code to the same number."""
    waiting = sign_in.waiting(visit.subject, payer.browser_of(request))
    if waiting is None:
        return visit.go()
    return _send_code(request, visit, waiting.phone, waiting.phone)


def _send_code(request: HttpRequest, visit: Visit, number: str, typed: str) -> HttpResponse:
    browser = payer.browser_of(request)
    if not visit.may_sign_in:
        return visit.go()
    try:
        sent = sign_in.send_code(visit, number, browser, address.of(request))
    except sign_in.NothingToSignInFor:
        return visit.go()  # the page tells what is true
    except (MerchantSuspended, AllStopped):
        return _stopped(request, visit)
    except texts.TooManyTexts as refused:
        waiting = sign_in.waiting(visit.subject, browser)
        if waiting is not None and waiting.phone == number:
            return _show_code(request, visit, waiting, error=str(refused))
        return show_phone(request, visit, value=typed[:40], error=str(refused))
    response = visit.go() if visit.is_payable else visit.go_with(SIGN_IN)
    payer.keep_browser(response, browser)
    payer.show_code(response, sent.shown_code)
    return response


def _stopped(request: HttpRequest, visit: Visit) -> HttpResponse:
    words = [_("We have sent no code. Try again later.")]
    context = {"heading": _("This shop takes no payments now"), "paragraphs": words}
    return pages.show(request, visit, "message", context)


def take_code(request: HttpRequest, visit: Visit) -> Customer | HttpResponse:
    """Return who has entered the right code; else the page to show."""
    entered = "".join(str(int(sign)) for sign in request.POST.get("code", "") if sign.isdecimal())
    browser = payer.browser_of(request)
    waiting = sign_in.waiting(visit.subject, browser)
    if waiting is None:
        return visit.go()
    if len(entered) != 6:
        return _show_code(request, visit, waiting, error=_("The code has 6 digits."))
    try:
        return sign_in.verify(visit.subject, browser, entered)
    except sign_in.WrongCode as wrong:
        left = ngettext(
            "That code is not right. You have {count} try left.",
            "That code is not right. You have {count} tries left.",
            wrong.tries_left,
        )
        return _show_code(request, visit, waiting, error=left.format(count=wrong.tries_left))
    except sign_in.CodeEnded:
        return show_phone(request, visit, error=_("That code no longer works. Ask for a new one."))
