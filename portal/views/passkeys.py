"""The pages for passkeys: adding, login, proof of identity, and removal (rule portal.passkeys)."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.mfa.webauthn import views as webauthn
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse_lazy

from portal.accounts import passkey_forms, second_factor

SECURITY = reverse_lazy("mfa_index")


class Add(webauthn.AddWebAuthnView):
    """Adds a passkey. With it, the person can also log in without a password."""

    form_class = passkey_forms.AddPasskeyForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        facts: dict[str, Any] = super().get_context_data(**kwargs)
        selection = facts["js_data"]["creation_options"]["publicKey"]["authenticatorSelection"]
        selection |= {"residentKey": "required", "requireResidentKey": True}
        return facts | {"is_required": second_factor.is_second_factor_missing(self.request.user)} | kwargs

    @transaction.atomic(durable=True)
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        passkey_forms.lock_person(request.user.pk)
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response

    def form_valid(self, form: Any) -> HttpResponse:
        second_factor.delete_orphan_codes(self.request.user)
        response: HttpResponse = super().form_valid(form)
        return response


class LogIn(webauthn.LoginWebAuthnView):
    """Logs a person in with a passkey only."""

    form_class = passkey_forms.PasskeyLoginForm

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return a challenge as JSON to a script. Redirect other requests to the login.

        The challenge is stored in the session.
        """
        if get_adapter().is_ajax(request):
            try:
                passkey_forms.count_login_attempt()
            except ValidationError as refusal:
                return JsonResponse({"error": refusal.message}, status=429)
        response: HttpResponse = super().get(request, *args, **kwargs)
        return response


class Reauthenticate(webauthn.ReauthenticateWebAuthnView):
    """Accepts a passkey as fresh proof of identity."""

    form_class = passkey_forms.PasskeyAgainForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        facts: dict[str, Any] = super().get_context_data(**kwargs)
        return facts | kwargs

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the page again with the error."""
        page: HttpResponse = self.render_to_response(self.get_context_data(form=form))
        return page


class Remove(webauthn.RemoveWebAuthnView):
    """Removes a passkey. If it was the last second factor, the recovery codes are removed too."""

    success_url = SECURITY

    @transaction.atomic(durable=True)
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response
