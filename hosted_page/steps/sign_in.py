"""The sign-in step for leads and mates: enter a mobile number, then the code that is sent to it."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import mate_shares
from checkout.authorizations import NotPayable
from checkout.group import share_claims
from checkout.mate_shares import ShareNotOpen
from checkout.models import Customer
from checkout.states import OperationInProgress, Status
from config.lib.web import address
from hosted_page import payer, prefill, remembered_browsers, rendering, summary
from hosted_page.group import collecting
from hosted_page.models import KnownBrowser, PayerSignIn
from hosted_page.payment_target import SIGN_IN, PaymentTarget, for_form, lead_name, wants_part
from hosted_page.sms.limits import CodeJustRequested, CountryNotServed, TooManySmsMessages
from hosted_page.steps import code_page, codes, share_step, typed_split
from hosted_page.steps.phone import InvalidPhone, mask_number, parse_phone, phone_hint, wrong_number_text
from payments import money
from payments.operator_stops import AllStopped, MerchantSuspended


def show_sign_in(
    request: HttpRequest, target: PaymentTarget, box_errors: dict[str, str] | None = None
) -> HttpResponse:
    """Ask for the requested code. If no code was requested, ask for a number.

    `box_errors` contains the errors of the opt-in box on the page. Rules prefill.masked, known.prefilled.
    """
    waiting_code = codes.waiting_code(target.subject, payer.browser_of(request))
    if "change" in request.GET or box_errors:
        return show_phone(request, target, box_errors=box_errors)
    if waiting_code is not None and codes.can_be_tried(waiting_code):
        return code_page.show_code(request, target, waiting_code)
    browser = remembered_browsers.find_remembered(request) if target.is_payable else None
    phone = prefill.offered_number(target)
    if browser and phone in ("", browser.phone):
        return _show_remembered(request, target, browser)
    return _offer_code(request, target, phone)


def _offer_code(
    request: HttpRequest, target: PaymentTarget, phone: str, error: str | TooManySmsMessages = ""
) -> HttpResponse:
    """Offer to send a code to `phone`, the number that the merchant sent. If it is "", ask for a number."""
    if phone:
        return show_prefilled(request, target, phone, error=error)
    return show_phone(request, target, error=error)


def show_prefilled(
    request: HttpRequest,
    target: PaymentTarget,
    phone: str,
    *,
    error: str | TooManySmsMessages = "",
    has_code_ended: bool = False,
) -> HttpResponse:
    """Offer to text a code to a number, of which the page shows only the last four digits."""
    context = _browser_context(request, target) | _prefilled_context(target, phone, error)
    context["has_code_ended"] = has_code_ended
    status = 422 if error or has_code_ended else 200
    return rendering.render_page(request, target, "prefilled", context, status=status)


def _prefilled_context(target: PaymentTarget, phone: str, error: str | TooManySmsMessages) -> dict[str, Any]:
    ask_in = error.seconds if isinstance(error, CodeJustRequested) else 0
    return {
        "action": target.address("prefilled"),
        "change_url": code_page.change_url(target),
        "masked_phone": mask_number(phone),
        "limit": "" if ask_in else str(error),
        "ask_in": ask_in,
    }


def _show_remembered(request: HttpRequest, target: PaymentTarget, browser: KnownBrowser) -> HttpResponse:
    """Ask the remembered person whether to continue. Rule known.opens."""
    amount = money.display_for_payer(target.amount, target.checkout.currency)
    context = {
        "action": target.address("known"),
        "end_action": target.address("known_end"),
        "masked_phone": mask_number(browser.phone),
        "since": summary.date_of(browser.proven_at, target.checkout),
        "not_you_action": target.address("leave"),
        "asked": {"name": lead_name(target.checkout), "amount": amount} if target.share else None,
        **share_step.decline_context(target) | _browser_context(request, target),
    }
    return rendering.render_page(request, target, "known", context)


def show_phone(
    request: HttpRequest,
    target: PaymentTarget,
    *,
    value: str = "",
    error: str | TooManySmsMessages = "",
    box_errors: dict[str, str] | None = None,
    has_code_ended: bool = False,
) -> HttpResponse:
    """Ask for a mobile number. For a share, the page also shows the share.

    If `error` is a reached limit, a notice shows it, because the number is valid. Any other error is below the
    field. With `has_code_ended`, a notice says that the code no longer works, and the field is empty and valid.
    Rule prefill.masked.
    """
    name, page_context = _phone_page(request, target, box_errors)
    context: dict[str, Any] = {"action": target.address("phone"), "value": value, **_error_context(error)}
    context |= page_context | _browser_context(request, target) | code_page.paid_context(target)
    context |= {"has_code_ended": has_code_ended}
    is_refused = bool(error or box_errors or has_code_ended)
    return rendering.render_page(request, target, name, context, status=422 if is_refused else 200)


def _error_context(error: str | TooManySmsMessages) -> dict[str, str]:
    """Return the error about the number, and the limit that prevents a code. At least one of them is ""."""
    is_limit = isinstance(error, TooManySmsMessages) and not isinstance(error, CountryNotServed)
    return {"error": "" if is_limit else str(error), "limit": str(error) if is_limit else ""}


def _phone_page(
    request: HttpRequest, target: PaymentTarget, box_errors: dict[str, str] | None
) -> tuple[str, dict[str, Any]]:
    """Return the name of the page that asks for a number, and the context that only this page needs.

    There are three such pages: for a payer who returns, for the payer of a share, and for the payer of an order.
    """
    if target.is_only_for_payer:
        heading = _("See your bill") if _has_bill(target) else _("See your receipt")
        return "returning", {"heading": heading, "phone_hint": phone_hint(target.checkout.merchant)}
    if target.share is not None:
        hint = {"phone_hint": phone_hint(target.checkout.merchant)}
        return "share", share_step.share_context(request, target, target.share, box_errors) | hint
    return "phone", {"phone_hint": phone_hint(target.checkout.merchant)}


def should_show_sign_in(request: HttpRequest, target: PaymentTarget) -> bool:
    """Return whether to show the sign-in instead of the public page.

    The sign-in is shown if the address requests it, and to a lead whose sign-in has ended. Rule sign_in.said.
    """
    if SIGN_IN in request.GET:
        return target.may_sign_in
    is_over = _has_bill(target) and _signed_out_notice(request, target) is not None
    return is_over and not wants_part(request)


def sign_in_link(request: HttpRequest, target: PaymentTarget) -> dict[str, str]:
    """Return the sign-in link and its label, for the public page of a paid order, or of a paid or pledged share."""
    if target.is_pledged:
        return {"sign_in_url": target.sign_in_path(), "sign_in_words": _("That’s me")}
    if not target.is_only_for_payer:
        return {"sign_in_url": "", "sign_in_words": ""}
    words = _("Did you pay this? Sign in to see your receipt")
    if _signed_out_notice(request, target) is not None:
        words = _("You are signed out. Sign in to see your receipt")
    elif _has_bill(target):
        words = _("Did you pay this? Sign in to see your bill")
    return {"sign_in_url": target.sign_in_path(), "sign_in_words": words}


def _has_bill(target: PaymentTarget) -> bool:
    return target.share is None and target.checkout.has_mates and target.checkout.status == Status.CAPTURED


def _browser_context(request: HttpRequest, target: PaymentTarget) -> dict[str, Any]:
    """Return the context of two notices: the sign-in has ended, or this sign-in would end another person's split."""
    signed_out = _signed_out_notice(request, target)
    return {
        "signed_out": signed_out,
        "is_being_split": signed_out is None and collecting.is_being_split(target),
    }


def _signed_out_notice(request: HttpRequest, target: PaymentTarget) -> dict[str, Any] | None:
    """Return the notice for a person whose sign-in has ended, or None if there is no such notice.

    While the order or share can be paid, anyone whose sign-in has ended sees the notice. After the payment,
    only the payer sees it. For a lead who has not paid, it also shows the lead's typed or saved split. Rule
    sign_in.said.
    """
    customer_uuid = payer.timed_out_customer(request, target.subject) if target.may_sign_in else None
    if customer_uuid is None or (target.is_only_for_payer and not target.is_paid_by(customer_uuid)):
        return None
    is_unpaid_lead = target.is_payable and target.share is None and customer_uuid == target.checkout.lead_id
    split = typed_split.split_summary(request, target) if is_unpaid_lead else None
    return {
        "split": split,
        "is_split_lost": is_unpaid_lead and typed_split.was_too_long(request, target.checkout),
        "is_paid": target.is_only_for_payer,
        "is_long": payer.has_reached_maximum(request, target.subject),
    }


@for_form
def submit_phone(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Send a code to the typed number."""
    typed = request.POST.get("phone", "")
    try:
        number = parse_phone(typed, target.checkout.merchant)
    except InvalidPhone:
        words = wrong_number_text(target.checkout.merchant)
        return show_phone(request, target, value=typed[:40], error=words)
    return send_code(request, target, number, partial(show_phone, request, target, value=typed[:40]))


@for_form
def resend_code(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Send a new code to the same number."""
    waiting_code = codes.waiting_code(target.subject, payer.browser_of(request))
    if waiting_code is None:
        return _show_code_ended(request, target)
    # No one is signed in on this page, so an error must not show the number in the form again.
    return send_code(
        request,
        target,
        waiting_code.phone,
        partial(_offer_code, request, target, prefill.offered_number(target)),
    )


def send_code(
    request: HttpRequest, target: PaymentTarget, phone: str, ask_for_number: Callable[..., HttpResponse]
) -> HttpResponse:
    """Send a code, and redirect to the page that asks for it.

    A person who is already signed in with this number continues without a code. If no code can be sent, show
    the error and ask for the last code that was sent to this number. If there is no such code, call
    `ask_for_number`, which shows its `error` and asks for a number.
    """
    signed_in = payer.customer_of(request, target.subject)
    if not target.may_sign_in or (signed_in is not None and target.person(signed_in).phone == phone):
        return target.go()
    try:
        return _queue_and_redirect(request, target, phone)
    except codes.NothingToSignInFor:
        return target.go()  # the page shows the current state
    except (MerchantSuspended, AllStopped):
        # Before the payment, the page of the order or share already says that the shop cannot take payments.
        return _show_shop_stopped(request, target) if target.is_only_for_payer else target.go()
    except TooManySmsMessages as error:
        return code_page.show_last_code(request, target, phone, str(error)) or ask_for_number(error=error)


def _queue_and_redirect(request: HttpRequest, target: PaymentTarget, phone: str) -> HttpResponse:
    browser = payer.browser_of(request)
    sent_code = codes.send_code(target, phone, browser, address.caller_address(request))
    response = target.go() if target.is_payable else target.go_with(SIGN_IN)
    payer.store_awaited_code(response, browser, sent_code.shown_code)
    if payer.customer_of(request, target.subject) is not None:
        payer.sign_out(request, response, target.subject)  # the next page asks for another number's code
    return response


def _show_shop_stopped(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    heading, words = _("This shop is not taking payments now"), _("We have not sent a code. Try again later.")
    return rendering.render_message(request, target, heading, words, **code_page.paid_context(target))


@for_form
def submit_code(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Sign in the person who enters the right code. For an order, this makes them the lead."""
    result = _verify_code(request, target)
    if isinstance(result, HttpResponse):
        return result
    response = complete_sign_in(request, target, *result)
    # At a paid order or share, a number that did not pay gets no code, and its attempts count against no limit of
    # the number. A guessed code must therefore not prove the number.
    if target.is_payable:
        remembered_browsers.remember(request, response, result.person)
    return response


def complete_sign_in(
    request: HttpRequest, target: PaymentTarget, customer: Customer, sign_in: PayerSignIn
) -> HttpResponse:
    """Sign the person in on this browser, and redirect to the next step.

    For an order, the person becomes the lead. If the person claimed the share through the group link, the
    claim is extended. If the order or share is paid, only its payer is signed in.
    """
    if target.group:
        # If the claim has ended, the page redirects to the group page.
        with contextlib.suppress(ShareNotOpen):
            share_claims.extend_claim(target.subject, claim=payer.claim_of(request))
    response = target.go(_step_after(request, target, customer))
    if target.is_only_for_payer and not target.is_paid_by(customer.pk):
        return response
    with contextlib.suppress(NotPayable, OperationInProgress):  # the page shows the current state
        if target.share is None and customer.pk != target.checkout.lead_id:
            mate_shares.make_lead(target.checkout.pk, customer)
        payer.sign_in_browser(request, response, sign_in)
    return response


def _step_after(request: HttpRequest, target: PaymentTarget, customer: Customer) -> str:
    is_new = customer.pk != target.checkout.lead_id
    has_typed = typed_split.has_typed(request, target.checkout)
    asks_for_split = is_new or has_typed or target.checkout.people is None
    return "split" if target.share is None and target.is_payable and asks_for_split else ""


def _verify_code(request: HttpRequest, target: PaymentTarget) -> codes.EnteredCode | HttpResponse:
    """Return the person who entered the right code and their sign-in, or the page to show instead."""
    digits = "".join(
        str(int(character)) for character in request.POST.get("code", "") if character.isdecimal()
    )
    waiting_code = codes.waiting_code(target.subject, payer.browser_of(request))
    if waiting_code is None:
        return _show_code_ended(request, target)
    if len(digits) != 6:
        return code_page.show_code(request, target, waiting_code, error=_("The code has 6 digits."))
    try:
        return codes.verify(waiting_code, digits)
    except codes.WrongCode as error:
        return code_page.show_code(request, target, waiting_code, error=_wrong_code_text(error.tries_left))
    except codes.CodeEnded:
        return _show_code_ended(request, target)


def _show_code_ended(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Say that the code has ended, and ask for a number. A person who is already signed in continues instead."""
    if not target.may_sign_in or payer.customer_of(request, target.subject) is not None:
        return target.go()
    if phone := prefill.offered_number(target):
        return show_prefilled(request, target, phone, has_code_ended=True)
    return show_phone(request, target, has_code_ended=True)


def _wrong_code_text(tries_left: int) -> str:
    words = ngettext(
        "That code is not right. You have {count} try left.",
        "That code is not right. You have {count} tries left.",
        tries_left,
    )
    return words.format(count=tries_left)
