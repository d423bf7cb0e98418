"""The pages for the security of a person's account: passwords, passkeys, authenticator app, codes, sessions."""

from typing import Any

from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa.models import Authenticator
from allauth.mfa.totp import views as totp_views
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe

from portal import access, audit, pages
from portal.access import requires
from portal.accounts import second_factor, sessions
from portal.models import Membership, User


@requires("view")
def show_security(request: HttpRequest, membership: Membership, /) -> HttpResponse:
    """Show the security settings of the person's account, as a portal page."""
    return pages.show_page(
        request,
        membership,
        "portal/security.html",
        _security_facts(request, membership.user),
        here="portal_security",
    )


@login_required
def show_account_security(request: HttpRequest) -> HttpResponse:
    """Show the security settings to a person without a merchant. Redirect other people to the portal's page."""
    if access.current_membership(request) is not None:
        return redirect("portal_security")
    return render(request, "mfa/index.html", _security_facts(request, _signed_in_person(request)))


@login_required
def end_sessions(request: HttpRequest) -> HttpResponse:
    """End the session whose id is in the form field `session`. Without an id, end all other sessions of the person.

    If a browser opens the address as a page, redirect to the security settings. Raises ReauthenticationRequired.
    """
    if request.method != "POST":
        return redirect("mfa_index")
    if not access.has_fresh_proof(request):
        raise ReauthenticationRequired
    person, session_id = _signed_in_person(request), request.POST.get("session", "")
    ended = sessions.end_other_sessions(request, person, session_id)
    if ended:
        audit.record_person_change(request, person, "sessions_ended", sessions=ended)
        messages.success(
            request, "That session has ended." if session_id else "All other sessions have ended."
        )
    response = redirect("mfa_index")
    response.status_code = 303
    return response


class ActivateTotp(totp_views.ActivateTOTPView):
    """Sets up an authenticator app. The code that confirms it cannot be used again."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        facts: dict[str, Any] = super().get_context_data(**kwargs)
        is_required = second_factor.is_second_factor_missing(self.request.user)
        return facts | {"is_required": is_required, "picture": mark_safe(facts["totp_svg"])}  # noqa: S308 - ours

    def form_valid(self, form: Any) -> HttpResponseBase:
        second_factor.delete_orphan_codes(self.request.user)
        response: HttpResponseBase = super().form_valid(form)
        second_factor.use_code(self.request.user, form.cleaned_data["code"])
        return response


def _signed_in_person(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def _security_facts(request: HttpRequest, user: User) -> dict[str, Any]:
    rows = list(Authenticator.objects.filter(user=user).order_by("created_at"))
    factors = {row.type: row for row in rows}
    codes = factors.get(Authenticator.Type.RECOVERY_CODES)
    return {
        "person": user,
        "passkeys": [row for row in rows if row.type == Authenticator.Type.WEBAUTHN],
        "app": factors.get(Authenticator.Type.TOTP),
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else None,
        "sessions": sessions.sessions_of(request, user),
    }
