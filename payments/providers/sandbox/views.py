"""The bank's own pages: the card form and the 3-D Secure confirmation. No other page sees card numbers."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from config.lib.web import csp, units
from payments import money, operator_stops
from payments.providers.sandbox import bank
from payments.providers.sandbox.cards import CARDS
from payments.providers.sandbox.forms import CardForm
from payments.providers.sandbox.models import Call, CardSession, Charge


@sensitive_post_parameters()
@sensitive_variables()
@require_http_methods(["GET", "HEAD", "POST"])
def show_card_form(request: HttpRequest, session_uuid: UUID) -> HttpResponse:
    """Ask for a card. If it is valid, redirect to the session's return address with `card_token` in the query."""
    session = CardSession.objects.filter(pk=session_uuid).first()
    if session is None:
        raise Http404
    if request.method != "POST" and (_is_used(request, session) or _has_been_stopped(session)):
        return HttpResponseRedirect(session.page.get("here", session.return_url))
    _activate_language(session)
    form = CardForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return _redirect_back(session, form.cleaned_data["number"])
    status, reload_address = (422, request.path) if request.method == "POST" else (200, "")
    context = _page_context(session, form) | {"reload_address": reload_address}
    response = render(request, "bank/card.html", context, status=status)
    csp.allow_forms_to(response, *session.page.get("leads_to", []))
    return response


def _is_used(request: HttpRequest, session: CardSession) -> bool:
    return request.COOKIES.get(_cookie_name()) == str(session.pk)


def _has_been_stopped(session: CardSession) -> bool:
    """Return whether an operator has stopped the shop since the page was opened.

    A page that was opened a few seconds ago is not checked. The process that opened it might not know about the stop
    yet, and would only open the page again.
    """
    is_new = timezone.now() - session.created_at < timedelta(seconds=2 * operator_stops.CACHE_SECONDS)
    merchant_uuid = session.page.get("merchant_uuid", "")
    return bool(merchant_uuid) and not is_new and operator_stops.is_stopped(UUID(merchant_uuid))


def _activate_language(session: CardSession) -> None:
    """Activate the language of the payment page, regardless of the browser's language."""
    if language := session.page.get("language"):
        translation.activate(language)


def _redirect_back(session: CardSession, number: str) -> HttpResponse:
    """Redirect to the return address with the token of the card. Set a cookie that marks the session as used.

    Rule pay.back.
    """
    token = bank.tokenise(subject=session.subject, number=number)
    separator = "&" if "?" in session.return_url else "?"
    url = f"{session.return_url}{separator}{urlencode({'card_token': token})}"
    response = HttpResponseRedirect(url, status=303)
    response.set_cookie(
        _cookie_name(), str(session.pk), secure=not settings.LOCAL, httponly=True, samesite="Lax"
    )
    return response


def _cookie_name() -> str:
    return f"{settings.COOKIE_PREFIX}card_given"


def _page_context(session: CardSession, form: CardForm) -> dict[str, Any]:
    """Return the data for the page, with the form's errors and expiry date, but never the number or the code.

    A mate must use another card than the lead, who mostly uses the first test card. On a mate's page it is the last.
    """
    errors = {name: form.errors[name][0] for name in form.errors}
    first, *others = _test_cards(translation.get_language())
    return {
        **session.page,
        "errors": errors,
        "values": {"expiry": form["expiry"].value() or ""},
        "test_cards": [*others, first] if session.page.get("lead") else [first, *others],
    }


@cache
def _test_cards(_language: str | None) -> Sequence[Mapping[str, str]]:
    return [{"number": card.spaced, "effect": units.join_units(_(card.effect))} for card in CARDS.values()]


@require_http_methods(["GET", "HEAD", "POST"])
def challenge(request: HttpRequest, key: UUID) -> HttpResponse:
    """Ask the payer to confirm an authorization (3-D Secure).

    When the payer has answered, redirect to the return address of the charge. If the payer has already answered, or
    if the authorization was voided, redirect at once.
    """
    call = Call.objects.filter(pk=key, kind="authorize").select_related("charge").first()
    if call is None:
        raise Http404
    charge, answer = call.charge, request.POST.get("answer")
    if answer in ("confirm", "refuse"):
        bank.answer_challenge(key=key, is_confirmed=answer == "confirm")
        charge.refresh_from_db()
    if charge.state == Charge.State.CHALLENGED:
        return _show_challenge(request, charge)
    if not charge.return_url:
        return render(request, "bank/challenge.html", {"is_answered": True})
    return HttpResponseRedirect(charge.return_url, status=303)


def _show_challenge(request: HttpRequest, charge: Charge) -> HttpResponse:
    status = 422 if request.method == "POST" else 200
    response = render(request, "bank/challenge.html", _challenge_context(charge), status=status)
    csp.allow_forms_to(response, charge.return_url)
    return response


def _challenge_context(charge: Charge) -> dict[str, Any]:
    """Return the data for the page of a challenge.

    The shop's name and the language are those of the card page's session.
    """
    sessions = CardSession.objects.filter(subject=charge.payer)
    session = sessions.order_by("-created_at").first()
    order = session.page.get("order", {}) if session else {}
    if session:
        _activate_language(session)
    return {
        "is_answered": False,
        "shop": order.get("merchant_name", ""),
        "amount": money.display_for_payer(charge.amount, charge.currency),
        "card": _("{brand} ending {last4}").format(brand=charge.card.brand, last4=charge.card.last4),
    }
