"""The bank's own pages, which alone see card numbers: the card form and the payer's confirmation (3-D Secure)."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from config.lib.prepared import Prepared
from config.lib.web import csp, units
from payments import money
from payments.providers.sandbox import bank
from payments.providers.sandbox.cards import CARDS
from payments.providers.sandbox.forms import CardForm
from payments.providers.sandbox.models import Call, CardSession, Charge


@sensitive_post_parameters()
@sensitive_variables()
@require_http_methods(["GET", "HEAD", "POST"])
def card(request: HttpRequest, session_uuid: UUID) -> HttpResponse:
    """Ask for a card; a valid one leads back to the session's return address with its `card_token`."""
    session = _SESSION.first(session_uuid)
    if session is None:
        raise Http404
    if request.method != "POST" and request.COOKIES.get(_cookie()) == str(session.pk):
        return HttpResponseRedirect(session.page.get("here", session.return_url))
    _speak(session)
    form = CardForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        return _back(session, form.cleaned_data["number"])
    status = 422 if request.method == "POST" else 200
    response = render(request, "bank/card.html", _context(session, form), status=status)
    csp.allow_forms_to(response, *session.page.get("leads_to", []))
    return response


_SESSION = Prepared(lambda pk: CardSession.objects.filter(pk=pk), UUID)


def _speak(session: CardSession) -> None:
    """Answer this request in the language of the page that led here, whatever the browser asks for."""
    if language := session.page.get("language"):
        translation.activate(language)


def _back(session: CardSession, number: str) -> HttpResponse:
    """Lead back with the card's token; the browser knows then that it has given its card here (rule pay.back)."""
    token = bank.tokenise(subject=session.subject, number=number)
    separator = "&" if "?" in session.return_url else "?"
    url = f"{session.return_url}{separator}{urlencode({'card_token': token})}"
    response = HttpResponseRedirect(url, status=303)
    response.set_cookie(_cookie(), str(session.pk), secure=not settings.LOCAL, httponly=True, samesite="Lax")
    return response


def _cookie() -> str:
    return f"{settings.COOKIE_PREFIX}card_given"


def _context(session: CardSession, form: CardForm) -> dict[str, Any]:
    """Return the session's page with the form's errors and values, but never the number or the code."""
    errors = {name: form.errors[name][0] for name in form.errors}
    return {
        **session.page,
        "errors": errors,
        "values": {"expiry": form["expiry"].value() or ""},
        "test_cards": _test_cards(translation.get_language()),
    }


@cache
def _test_cards(_language: str | None) -> Sequence[Mapping[str, str]]:
    """Return each card's number and what it does, in the active language."""
    return [{"number": card.spaced, "effect": units.whole(_(card.effect))} for card in CARDS.values()]


@require_http_methods(["GET", "HEAD", "POST"])
def challenge(request: HttpRequest, key: UUID) -> HttpResponse:
    """Ask the payer to confirm an authorization (3-D Secure); the answer leads back to the charge's return address.

    If it was answered before, or has been given up, the page leads back at once.
    """
    call = Call.objects.filter(pk=key, kind="authorize").select_related("charge").first()
    if call is None:
        raise Http404
    charge, answer = call.charge, request.POST.get("answer")
    if answer in ("confirm", "refuse"):
        bank.answer_challenge(key=key, is_confirmed=answer == "confirm")
        charge.refresh_from_db()
    if charge.state == Charge.State.CHALLENGED:
        return _ask(request, charge)
    if not charge.return_url:
        return render(request, "bank/challenge.html", {"is_answered": True})
    return HttpResponseRedirect(charge.return_url, status=303)


def _ask(request: HttpRequest, charge: Charge) -> HttpResponse:
    status = 422 if request.method == "POST" else 200
    response = render(request, "bank/challenge.html", _question(charge), status=status)
    csp.allow_forms_to(response, charge.return_url)
    return response


def _question(charge: Charge) -> dict[str, Any]:
    """Return what the bank knows of the payment; shop's name and language come from the session of the card page."""
    sessions = CardSession.objects.filter(subject=charge.payer)
    session = sessions.order_by("-created_at").first()
    order = session.page.get("order", {}) if session else {}
    if session:
        _speak(session)
    return {
        "is_answered": False,
        "shop": order.get("merchant_name", ""),
        "amount": money.for_payer(charge.amount, charge.currency),
        "card": _("{brand} ending {last4}").format(brand=charge.card.brand, last4=charge.card.last4),
    }
