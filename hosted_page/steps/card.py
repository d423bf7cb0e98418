"""The card step: the provider's card page and its token (rules pay.no_card_data, pay.token_once)."""

import re
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core import signing
from django.db.models import Exists, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from checkout import authorizations, given_up_cards, mate_shares, operation_recovery
from checkout.authorizations import NotPayable, NotTheLead, PaymentResult
from checkout.mate_shares import OwnShare, ShareNotOpen
from checkout.models import Customer
from checkout.states import OperationInProgress, ShareStatus
from config.lib import connection_release
from config.lib.bulkhead import Busy
from config.lib.web import address, request_id
from hosted_page import payer, rendering, waiting_times
from hosted_page.payment_target import PaymentTarget, for_form, for_page, for_return
from hosted_page.steps import card_page, declines, sign_in_extension
from hosted_page.steps.declines import TooManyDeclines, TooManyOfOrder
from payments import bulkheads, operator_stops, safe_answers
from payments.cause import Cause
from payments.models import Payment
from payments.operator_stops import AllStopped, MerchantSuspended
from payments.provider import CardForm, CardUse, ProviderUnreachable, Verdict

NOT_TRIED_ERRORS = (
    NotPayable,
    NotTheLead,
    ShareNotOpen,
    OwnShare,
    OperationInProgress,
    Busy,
    MerchantSuspended,
    AllStopped,
)
_TOKEN = re.compile(r"[\x21-\x7e]{1,255}")


@for_page
def show_card_step(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the provider's card page, or redirect to it, for a person who may pay.

    A lead must choose the split first.
    """
    customer_uuid = target.payer_of(request)
    is_stopped = operator_stops.is_stopped(target.checkout.merchant_id)
    if customer_uuid is None or is_stopped or (target.share is None and target.checkout.people is None):
        return target.go()
    try:
        person = target.person(customer_uuid)
        declines.check_limits(target, person, address.caller_address(request))
        response = _card_page(request, target, person)
    except TooManyDeclines as too_many:
        return _refuse_attempts(request, target, too_many)
    except (Busy, ProviderUnreachable):
        return show_busy(request, target)
    payer.prolong(request, response, target.subject)
    return response


def _card_page(request: HttpRequest, target: PaymentTarget, person: Customer) -> HttpResponse:
    """Show a card page, or redirect to it.

    The card page returns to an address that is valid only for this target, this person, this amount and these
    units. Raises Busy, ProviderUnreachable.
    """
    bound = signing.dumps(_bound_values(target, person.pk), salt="card")
    back = target.absolute("paid")
    return_url = f"{back}{'&' if '?' in back else '?'}{urlencode({'bound': bound})}"
    notice = sign_in_extension.extension_notice(request, target)
    signed_in = {"stay": notice, "leave": rendering.sign_out_button(request, target)}
    merchant, around = target.checkout.merchant, card_page.page_context(target, person) | signed_in
    of_money = (target.amount, target.checkout.currency, merchant.provider_account)
    with bulkheads.PAYERS.slot() as slot:
        slot.wait()
        connection_release.release()
        page = safe_answers.card_page(CardForm(target.subject, return_url, *of_money, page=around))
    if isinstance(page, str):
        return HttpResponseRedirect(page)
    return rendering.show_card_page(request, target, page, around)


def _bound_values(target: PaymentTarget, person_uuid: UUID) -> list[Any]:
    """Return the values to which a card page is bound: the target, the person, the amount and the units."""
    units = target.share.units if target.share else []
    return [target.subject.hex, str(person_uuid), target.amount, *units]


@for_return
def paid(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Pay with the card token that the provider returned. A token works once, for this target and person."""
    customer_uuid, bound = target.payer_of(request), _bound_target(request)
    if customer_uuid is None or bound != _bound_values(target, customer_uuid):
        return _refuse_signed_out(request, target)
    use = CardUse(_card_token(request), return_url=target.absolute("confirmed"))
    person: Any = _payer_query(target.subject, use.token, customer_uuid).get()
    if person.has_tried:
        return target.go()  # a reload: the token was tried before, and the page shows the outcome
    try:
        paid = _pay_target(target, use, person, address.caller_address(request), payer.claim_of(request))
    except (TooManyDeclines, *NOT_TRIED_ERRORS) as refusal:
        return _show_not_tried(request, target, refusal)
    return _go_on(target, paid)


def _go_on(target: PaymentTarget, paid: PaymentResult) -> HttpResponse:
    """Redirect to the bank's question, or to the page that shows how the payment ended."""
    if paid.verdict == Verdict.NEEDS_ACTION:
        return HttpResponseRedirect(paid.action_url, status=303)
    return _show_end(target, is_declined=paid.verdict == Verdict.DECLINED)


def _show_end(target: PaymentTarget, *, is_declined: bool) -> HttpResponse:
    is_split = target.share is None and target.checkout.has_mates
    # Without the card step, the lead of a split order would see who is in, and not that the card was declined.
    return target.go("card" if is_declined and is_split else "")


def _payer_query(subject: UUID, token: str, customer_uuid: UUID) -> QuerySet[Customer, Any]:
    """Return the query for the person.

    `has_tried` says whether this token was already tried for the subject.
    """
    tried = Payment.objects.filter(subject=subject, card_token=token)
    return Customer.objects.filter(pk=customer_uuid).annotate(has_tried=Exists(tried))


def _refuse_signed_out(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Say that the card was not used, if this browser no longer shows who has typed it.

    Otherwise, redirect to the page with the current state, which says that the sign-in has ended.
    """
    is_known = payer.customer_of(request, target.subject) or payer.timed_out_customer(request, target.subject)
    is_open = target.is_payable and (target.share is None or target.share.status == ShareStatus.OPEN)
    if is_known or not is_open:
        return target.go()
    link = {"href": target.address(), "label": _("Sign in again")}
    heading, words = _("You are signed out"), _("You have not been charged.")
    return rendering.render_message(request, target, heading, words, link=link, status=403)


def _bound_target(request: HttpRequest) -> object:
    """Return the target, the person and the amount for which the card page was opened.

    Return None if that was too long ago.

    Raises Http404 if the service did not open the page.
    """
    try:
        return signing.loads(request.GET.get("bound", ""), salt="card", max_age=payer.LIFE * 4)
    except signing.SignatureExpired:
        return None
    except signing.BadSignature:
        raise Http404 from None


def _card_token(request: HttpRequest) -> str:
    """Return the card token of the request. If its form is wrong, return "", which the provider declines."""
    given = request.GET.get("card_token", "")
    return given if _TOKEN.fullmatch(given) else ""


def _show_not_tried(request: HttpRequest, target: PaymentTarget, refusal: Exception) -> HttpResponse:
    match refusal:
        case TooManyDeclines():
            # The card's token is not in the next page's address, so a reload of that page pays nothing.
            return target.go("card")
        case Busy():
            return show_busy(request, target)
        case _:
            return target.go()  # the page shows the current state


def _refuse_attempts(request: HttpRequest, target: PaymentTarget, too_many: TooManyDeclines) -> HttpResponse:
    when = waiting_times.time_until(too_many.until, too_many.now)
    words = _("No money was taken. Ask your bank what is wrong, or try again {when}.")
    if target.share is None and target.checkout.payable_until <= too_many.until:
        words = _("No money was taken. Ask your bank what is wrong, or order again at the shop.")
        if not isinstance(too_many, TooManyOfOrder):
            words = _("No money was taken. Ask your bank what is wrong. You can order again {when}.")
    heading = _("Too many cards were declined")
    return rendering.render_message(request, target, heading, words.format(when=when), status=429)


def _pay_target(
    target: PaymentTarget, use: CardUse, person: Customer, address: str, claim: str = ""
) -> PaymentResult:
    cause = Cause(f"customer:{person.pk}", request_id.current_id())
    admit = partial(declines.count_card_try, target, person, use.token, address)
    if target.share is None:
        return authorizations.authorize(
            target.checkout.pk,
            card=use,
            lead=person,
            cause=cause,
            language=get_language() or "",
            admit=admit,
        )
    return mate_shares.pay(
        target.share.pk,
        agreed=(target.amount, target.share.units),
        card=use,
        mate=person,
        cause=cause,
        claim=claim,
        admit=admit,
    )


def show_busy(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show that the bank is slow.

    No operation was started and the token is still valid, so the link retries at the same address.
    """
    words = _("You have not paid anything yet. Try again in a moment.")
    link = {"href": request.get_full_path(), "label": _("Try again")}
    return rendering.render_message(
        request, target, _("The bank is slow right now"), words, link=link, status=503
    )


@for_return
def confirmed(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Receive the payer after the bank's challenge, and ask the bank at once for the outcome."""
    if payer.customer_of(request, target.subject):
        operation_recovery.finish_for_payer(target.subject)
    last = Payment.objects.filter(subject=target.subject).order_by("-created_at").first()
    return _show_end(target, is_declined=last is not None and last.status == Payment.Status.DECLINED)


@for_form
def another_card(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Give up the card that waits for the bank or a challenge, so that the payer can use another card."""
    if customer_uuid := target.payer_of(request):
        given_up_cards.allow_another_card(target.checkout.pk, target.subject, lead=customer_uuid)
    return target.go()
