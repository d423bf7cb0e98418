"""The bank's own page: it alone sees card numbers, and gives back a token by redirect."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from config.lib import csp
from payments.providers.sandbox import bank
from payments.providers.sandbox.cards import CARDS
from payments.providers.sandbox.forms import CardForm
from payments.providers.sandbox.models import CardSession


@never_cache
@sensitive_post_parameters()
@sensitive_variables()
@require_http_methods(["GET", "HEAD", "POST"])
def card(request: HttpRequest, session_uuid: UUID) -> HttpResponse:
    """Ask for a card; a good one goes back to the session's return address as `card_token`."""
    session = CardSession.objects.filter(pk=session_uuid).first()
    if session is None:
        raise Http404
    form = CardForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        token = bank.tokenise(session.subject, form.cleaned_data["number"])
        separator = "&" if "?" in session.return_url else "?"
        return HttpResponseRedirect(
            f"{session.return_url}{separator}{urlencode({'card_token': token})}", status=303
        )
    status = 422 if request.method == "POST" else 200
    response = render(request, "bank/card.html", _context(session, form), status=status)
    csp.allow_forms_to(response, *session.page.get("leads_to", []))
    return response


def _context(session: CardSession, form: CardForm) -> dict[str, Any]:
    """The page around the fields comes from whoever opened the session; number and code are never put back."""
    errors = {name: form.errors[name][0] for name in form.errors}
    return {
        **session.page,
        "errors": errors,
        "values": {name: form[name].value() or "" for name in ("expiry", "name")},
        "test_cards": [{"number": card.spaced, "effect": card.effect} for card in CARDS.values()],
    }
