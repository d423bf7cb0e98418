"""The pay step: to the provider's card page, and back with a token (rules pay.no_card_data, pay.token_once)."""

import re
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from checkout import abandonment, finishing, sharing, transitions
from checkout.models import Checkout, Customer
from checkout.sharing import OwnShare, ShareNotOpen
from checkout.transitions import NotPayable, NotTheLead, OperationInProgress, Paid
from config.lib import idle
from config.lib.bulkhead import Busy
from config.lib.web import address, request_id
from hosted_page import language, moments, payer, rendering, summary
from hosted_page.payment_target import PaymentTarget, for_target
from hosted_page.steps import declines
from hosted_page.steps.declines import TooManyDeclines, TooManyOfOrder
from payments import answers, bulkheads, money, provider
from payments.cause import Cause
from payments.models import Payment
from payments.provider import CardUse, ProviderUnreachable, Verdict
from payments.switches import AllStopped, MerchantSuspended

# What a bank's refusal means for the person at the page.
DECLINES = {
    "insufficient_funds": gettext_lazy("There is not enough money on this card."),
    "expired_card": gettext_lazy("This card has expired."),
    "challenge_failed": gettext_lazy("You did not confirm this payment with your bank."),
    "challenge_expired": gettext_lazy("Your bank did not hear from you in time."),
    "never_arrived": gettext_lazy("Your bank did not answer."),
    "same_card": gettext_lazy("This card has paid the whole order already."),
    "held_for_less": gettext_lazy("Your bank would hold only a part of the amount."),
}
DECLINED = gettext_lazy("Your bank declined this card.")
NOT_TRIED = (
    NotPayable,
    NotTheLead,
    ShareNotOpen,
    OwnShare,
    OperationInProgress,
    Busy,
    MerchantSuspended,
    AllStopped,
)
_TOKEN = re.compile(r"[\x21-\x7e]{1,64}")


@never_cache
@require_safe
@for_target
def card(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Send who may pay to the provider's card page; a lead, once it is clear who shares the cost."""
    customer_uuid = target.payer_of(request)
    if customer_uuid is None or (target.share is None and target.checkout.people is None):
        return target.go()
    try:
        declines.check(target, Customer.objects.get(pk=customer_uuid), address.of(request))
    except TooManyDeclines as too_many:
        return _enough(request, target, too_many)
    bound = signing.dumps([target.subject.hex, str(customer_uuid)], salt="card")
    back = target.absolute("paid")
    form = provider.CardForm(
        subject=target.subject,
        return_url=f"{back}{'&' if '?' in back else '?'}{urlencode({'bound': bound})}",
        page=_card_page(target),
    )
    try:
        with bulkheads.PAYERS.slot() as slot:
            slot.wait()
            idle.begin()
            response = HttpResponseRedirect(answers.card_page(form))
    except (Busy, ProviderUnreachable):
        return busy(request, target)
    payer.remember(response, target.subject, customer_uuid)
    return response


def _card_page(target: PaymentTarget) -> dict[str, Any]:
    """What the provider shows around its fields."""
    amount = money.display(target.amount, target.checkout.currency)
    is_lead = target.share is None
    held_rows = _held_rows(target.checkout, amount) if is_lead else []
    return {
        "order": summary.as_json(summary.of(target)),
        "is_share": not is_lead,
        "cancel_url_path": target.address("cancel") if is_lead else "",
        "change_split_url": target.address("split") if is_lead else "",
        "pay_label": _("Pay {amount}").format(amount=amount),
        "held_rows": held_rows,
        "held_note": _("If a mate never pays, their share stays with you.") if held_rows else "",
        "languages": language.others(),
        "here": target.address("card"),  # opened anew, so that all of it is in the other language
        "notice": _decline_notice(target.subject),
        "leads_to": [target.checkout.cancel_url, settings.CHECKOUT_PAGE_URL],
    }


def _held_rows(checkout: Checkout, amount: str) -> list[dict[str, str]]:
    shares = list(checkout.payment_requests.values_list("amount", flat=True))
    if not shares:
        return []
    label = _("Your mate’s share") if len(shares) == 1 else _("Your {count} mates’ shares")
    return [
        {"label": _("Held on your card now"), "amount": amount},
        {"label": label.format(count=len(shares)), "amount": money.display(sum(shares), checkout.currency)},
        {
            "label": _("Your own part"),
            "amount": money.display(checkout.amount - sum(shares), checkout.currency),
        },
    ]


def _decline_notice(subject: UUID) -> dict[str, str] | None:
    last = Payment.objects.filter(subject=subject).order_by("-created_at").first()
    if last is None or not last.decline_reason or last.decline_reason in declines.UNTOLD:
        return None
    what_next = (
        _("Try again, or use another card.")
        if last.decline_reason in declines.SAME_CARD_MAY_DO
        else _("Try another card.")
    )
    title = DECLINES.get(last.decline_reason, DECLINED)
    safe = _("No money was taken.")
    return {"title": str(title), "text": f"{safe} {what_next}"}


@never_cache
@require_safe
@for_target
def paid(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Come back from the provider with a card token, good once, for this target and this person: pay with it."""
    customer_uuid = target.payer_of(request)
    try:
        bound = signing.loads(request.GET.get("bound", ""), salt="card", max_age=payer.LIFE * 4)
    except signing.BadSignature:
        raise Http404 from None
    if customer_uuid is None or bound != [target.subject.hex, str(customer_uuid)]:
        return target.go()
    token = _card_token(request)
    if Payment.objects.filter(subject=target.subject, card_token=token).exists():
        return target.go()  # a reload: the token has been tried, and the page tells what came of it
    use = CardUse(token, return_url=target.absolute("confirmed"))
    try:
        paid = _try(target, use, Customer.objects.get(pk=customer_uuid), address.of(request))
    except TooManyDeclines as too_many:
        return _enough(request, target, too_many)
    except (MerchantSuspended, AllStopped):
        context = {"heading": _("This shop takes no payments now"), "paragraphs": [_("You paid nothing.")]}
        return rendering.show(request, target, "message", context)
    except Busy:
        return busy(request, target)
    except (NotPayable, NotTheLead, ShareNotOpen, OwnShare, OperationInProgress):
        return target.go()  # the page tells what is true
    if paid.verdict == Verdict.NEEDS_ACTION:
        return HttpResponseRedirect(paid.action_url, status=303)
    return target.go()


def _enough(request: HttpRequest, target: PaymentTarget, too_many: TooManyDeclines) -> HttpResponse:
    when = moments.until(too_many.until, too_many.now)
    words = _("No money was taken. Ask your bank what is wrong, or come back {when}.")
    if target.share is None and target.checkout.payable_until <= too_many.until:
        words = _("No money was taken. Ask your bank what is wrong, or order again at the shop.")
        if not isinstance(too_many, TooManyOfOrder):
            words = _("No money was taken. Ask your bank what is wrong. You can order again {when}.")
    context = {"heading": _("Too many cards were declined"), "paragraphs": [words.format(when=when)]}
    return rendering.show(request, target, "message", context, status=429)


def _try(target: PaymentTarget, use: CardUse, person: Customer, address: str) -> Paid:
    made = declines.begin(target, person, use.token, address)
    try:
        paid = _pay(target, use, person)
    except NOT_TRIED:
        declines.take_back(made)
        raise
    declines.end(made, paid)
    return paid


def _pay(target: PaymentTarget, use: CardUse, person: Customer) -> Paid:
    cause = Cause(f"customer:{person.pk}", request_id.current())
    if target.share is None:
        return transitions.authorize(target.checkout.pk, card=use, lead=person, cause=cause)
    return sharing.pay(target.share.pk, card=use, mate=person, cause=cause)


def busy(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Nothing was begun, and the token is still good: the same address is the way to try again."""
    context = {
        "heading": _("The bank is slow just now"),
        "paragraphs": [_("You paid nothing yet. Try again in a moment.")],
        "link": {"href": request.get_full_path(), "label": _("Try again")},
    }
    return rendering.show(request, target, "message", context, status=503)


@never_cache
@require_safe
@for_target
def confirmed(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Come back from the bank's question: ask the bank at once what came of it."""
    if target.payer_of(request):
        finishing.finish_now(target.subject)
    return target.go()


@require_POST
@for_target
def another(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Let the card go that the bank is silent about, or asks about, and go back to the card page."""
    if target.payer_of(request):
        abandonment.use_another_card(target.checkout.pk, target.subject)
    return target.go()


def _card_token(request: HttpRequest) -> str:
    """Return the token that came back; what cannot be one becomes "", which the provider declines."""
    given = request.GET.get("card_token", "")
    return given if _TOKEN.fullmatch(given) else ""
