"""Shows the card step, and pays with the card token.

The provider's card page makes a card token, and the service pays with it (rules pay.no_card_data, pay.token_once).
"""

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
from hosted_page import ended_pledges, payer, rendering, waiting_times
from hosted_page.payment_target import PaymentTarget, for_form, for_page, for_return, lead_name
from hosted_page.steps import card_page, declines, sign_in_extension
from hosted_page.steps.declines import TooManyDeclines, TooManyOfOrder, TooManyOfPledge
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
    """Show the provider's card page, or redirect to it, if the person may pay.

    A lead must choose how to split the cost first.
    """
    customer_uuid = target.payer_of(request)
    is_stopped = operator_stops.is_stopped(target.checkout.merchant_id)
    if customer_uuid is None or is_stopped or (target.share is None and target.checkout.people is None):
        return target.go()
    try:
        person = target.person(customer_uuid)
        declines.check_limits(target, person, address.caller_address(request))
        response = _open_card_page(request, target, person)
    except TooManyDeclines as error:
        return _refuse_attempts(request, target, error)
    except (Busy, ProviderUnreachable):
        return show_busy(request, target)
    payer.prolong(request, response, target.subject)
    return response


def _open_card_page(request: HttpRequest, target: PaymentTarget, person: Customer) -> HttpResponse:
    """Show a card page, or redirect to it. Raises Busy, ProviderUnreachable."""
    context = _page_context(request, target, person)
    currency, account = target.checkout.currency, target.checkout.merchant.provider_account
    return_url = _bound_return_url(target, person)
    form = CardForm(target.subject, return_url, target.amount, currency, account, page=context)
    with bulkheads.PAYERS.slot() as slot:
        slot.wait()
        connection_release.release()
        page = safe_answers.card_page(form)
    if isinstance(page, str):
        return HttpResponseRedirect(page)
    return rendering.show_card_page(request, target, page, context)


def _bound_return_url(target: PaymentTarget, person: Customer) -> str:
    """Return the address to which the card page sends the payer back.

    The address is valid only for this target, this person, this amount and these units.
    """
    bound = signing.dumps(_bound_values(target, person.pk), salt="card")
    url = target.absolute("paid")
    return f"{url}{'&' if '?' in url else '?'}{urlencode({'bound': bound})}"


def _page_context(request: HttpRequest, target: PaymentTarget, person: Customer) -> dict[str, Any]:
    """Return the context around the card fields, with the notice about pledges that the lead's new split has ended."""
    notice = sign_in_extension.extension_notice(request, target)
    signed_in = {"stay": notice, "leave": rendering.sign_out_button(request, target)}
    context = card_page.page_context(target, person) | signed_in
    is_changed = target.share is None and ended_pledges.CHANGED in request.GET
    ended = ended_pledges.notice_for_lead(target.checkout, has_link=False) if is_changed else None
    if ended is not None:
        context["notice"] = {"tone": "move", "icon": "edit", "title": ended["title"], "text": ended["words"]}
    return context


def _bound_values(target: PaymentTarget, person_uuid: UUID) -> list[Any]:
    """Return the values to which a card page is bound: the target, the person, the amount and the units."""
    units = target.share.units if target.share else []
    return [target.subject.hex, str(person_uuid), target.amount, *units]


@for_return
def pay_with_token(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Pay with the card token that the provider returned. A token works only once, for this target and this person."""
    customer_uuid, bound = target.payer_of(request), _bound_target(request)
    if customer_uuid is None or bound != _bound_values(target, customer_uuid):
        return _refuse_signed_out(request, target)
    card = CardUse(_card_token(request), return_url=target.absolute("confirmed"))
    person: Any = _payer_query(target.subject, card.token, customer_uuid).get()
    if person.has_tried:
        return target.go()  # a reload: the token was already used, and the page shows the outcome
    try:
        result = _pay_target(target, card, person, address.caller_address(request), payer.claim_of(request))
    except (TooManyDeclines, *NOT_TRIED_ERRORS) as refusal:
        return _show_not_tried(request, target, refusal)
    return _redirect_after_attempt(target, result)


def _redirect_after_attempt(target: PaymentTarget, result: PaymentResult) -> HttpResponse:
    """Redirect to the bank's challenge, or to the page that shows the outcome of the payment."""
    if result.verdict == Verdict.NEEDS_ACTION:
        return HttpResponseRedirect(result.action_url, status=303)
    return _redirect_to_outcome(target, is_declined=result.verdict == Verdict.DECLINED)


def _redirect_to_outcome(target: PaymentTarget, *, is_declined: bool) -> HttpResponse:
    is_split = target.share is None and target.checkout.has_mates
    # The page of a split order shows its lead who has pledged. Only the card step shows the decline.
    return target.go("card" if is_declined and is_split else "")


def _payer_query(subject: UUID, token: str, customer_uuid: UUID) -> QuerySet[Customer, Any]:
    """Return the query for the person.

    `has_tried` says whether a payment of the subject has already used this token.
    """
    tried = Payment.objects.filter(subject=subject, card_token=token)
    return Customer.objects.filter(pk=customer_uuid).annotate(has_tried=Exists(tried))


def _refuse_signed_out(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Say that the card was not used, if the browser has no current and no ended sign-in.

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
    """Return the values to which the card page is bound, or None if the page was opened too long ago.

    Raises Http404 if the service did not open the page.
    """
    try:
        return signing.loads(request.GET.get("bound", ""), salt="card", max_age=payer.LIFE * 4)
    except signing.SignatureExpired:
        return None
    except signing.BadSignature:
        raise Http404 from None


def _card_token(request: HttpRequest) -> str:
    """Return the card token of the request, or "" if it has invalid characters. The provider declines ""."""
    token = request.GET.get("card_token", "")
    return token if _TOKEN.fullmatch(token) else ""


def _show_not_tried(request: HttpRequest, target: PaymentTarget, error: Exception) -> HttpResponse:
    match error:
        case TooManyDeclines():
            # The address of the next page does not contain the card token, so a reload of that page does not pay.
            return target.go("card")
        case Busy():
            return show_busy(request, target)
        case _:
            return target.go()  # the page shows the current state


def _refuse_attempts(request: HttpRequest, target: PaymentTarget, error: TooManyDeclines) -> HttpResponse:
    heading = _("Too many cards were declined")
    if isinstance(error, TooManyOfPledge):
        heading = _("No more cards for now")
    return rendering.render_message(request, target, heading, _limit_advice(target, error), status=429)


def _limit_advice(target: PaymentTarget, error: TooManyDeclines) -> str:
    """Return what the person can do after a limit on cards, and when."""
    ends_first = target.checkout.payable_until <= error.until
    if ends_first and (target.share is None or target.is_pledge):
        words = _late_advice(target, error)
    elif isinstance(error, TooManyOfPledge):
        words = _("No money was taken. Try again {when}.")
    else:
        words = _("No money was taken. Ask your bank what is wrong, or try again {when}.")
    when = waiting_times.time_until(error.until, error.now)
    return words.format(when=when, name=lead_name(target.checkout))


def _late_advice(target: PaymentTarget, error: TooManyDeclines) -> str:
    """Return the advice for an order that expires before the next card is allowed.

    After the lead's payment, the stricter limits on pledges no longer apply to the shares.
    """
    if isinstance(error, TooManyOfPledge):
        return _("No money was taken. If {name} pays, you can pay your share after that.")
    if target.is_pledge:
        return _(
            "No money was taken. Ask your bank what is wrong. If {name} pays, you can try again after that."
        )
    if isinstance(error, TooManyOfOrder):
        return _("No money was taken. Ask your bank what is wrong, or order again at the shop.")
    return _("No money was taken. Ask your bank what is wrong. You can order again {when}.")


def _pay_target(
    target: PaymentTarget, card: CardUse, person: Customer, address: str, claim: str = ""
) -> PaymentResult:
    cause = Cause(f"customer:{person.pk}", request_id.current_id())
    count_try = partial(declines.count_card_try, target, person, card.token, address)
    if target.share is None:
        return authorizations.authorize(
            target.checkout.pk,
            card=card,
            lead=person,
            cause=cause,
            language=get_language() or "",
            admit=count_try,
        )
    return mate_shares.pay(
        target.share.pk,
        agreed=(target.amount, target.share.units),
        card=card,
        mate=person,
        cause=cause,
        claim=claim,
        admit=count_try,
    )


def show_busy(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Say that the bank is slow.

    No operation was started and the token is still valid, so the link on the page tries the same address again.
    """
    words = _("You have not paid anything yet. Try again in a moment.")
    link = {"href": request.get_full_path(), "label": _("Try again")}
    return rendering.render_message(
        request, target, _("The bank is slow right now"), words, link=link, status=503
    )


@for_return
def finish_challenge(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Query the bank for the outcome of its challenge.

    Then redirect the payer, who has come back from the challenge.
    """
    if payer.customer_of(request, target.subject):
        operation_recovery.finish_for_payer(target.subject)
    last = Payment.objects.filter(subject=target.subject).order_by("-created_at").first()
    return _redirect_to_outcome(
        target, is_declined=last is not None and last.status == Payment.Status.DECLINED
    )


@for_form
def allow_another_card(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Abandon the card that waits for the bank or a challenge, so that the payer can use another card."""
    if customer_uuid := target.payer_of(request):
        given_up_cards.allow_another_card(target.checkout.pk, target.subject, lead=customer_uuid)
    return target.go()
