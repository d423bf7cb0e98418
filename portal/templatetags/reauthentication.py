"""Template tags for pages that ask for proof of identity. They return the next step, and the target of Cancel."""

from typing import Any

from django import template
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme

# For each URL name that requires proof, the words after "Enter your password to".
STEPS = {
    "portal_customer": "see the customer’s data",
    "portal_reveal": "see the personal data",
    "portal_refund": "refund the checkout",
    "portal_cancel": "cancel the checkout",
    "portal_invite": "invite a person",
    "portal_invitation_end": "withdraw the invitation",
    "portal_role": "change the person’s role",
    "portal_remove": "remove the person",
    "portal_endpoint": "save the endpoint",
    "portal_endpoint_approve": "approve the endpoint for personal data",
    "portal_endpoint_end": "remove the endpoint",
    "portal_rotate": "rotate the signing secret",
    "portal_rotate_and_run": "rotate the signing secret",
    "portal_revoke": "stop the old signing secret",
    "portal_key_new": "make an API key",
    "portal_key_rotate": "rotate the key’s secret",
    "portal_key_stop": "stop the key’s old secret",
    "portal_key_revoke": "revoke the key",
    "portal_settings_save": "save the settings",
    "mfa_activate_totp": "set up an authenticator app",
    "mfa_deactivate_totp": "remove your authenticator app",
    "mfa_add_webauthn": "add a passkey",
    "mfa_remove_webauthn": "remove the passkey",
    "mfa_view_recovery_codes": "see your recovery codes",
    "mfa_generate_recovery_codes": "make new recovery codes",
    "mfa_download_recovery_codes": "download your recovery codes",
    "usersessions_list": "end sessions",
}
OPERATORS_STEP = "make this change"
FALLBACK_STEP = "continue"
register = template.Library()


@register.simple_tag(takes_context=True)
def proven_step(context: dict[str, Any]) -> str:
    """Return the step that needs the proof, such as "refund the checkout"."""
    match = _match_of(_next_address(context["request"]))
    if match is None:
        return FALLBACK_STEP
    return OPERATORS_STEP if match.namespace == "admin" else STEPS.get(match.url_name or "", FALLBACK_STEP)


@register.simple_tag(takes_context=True)
def previous_page(context: dict[str, Any]) -> str:
    """Return the address of the page from which the person came, if it is on this site.

    After a wrong password, or if the person chose another kind of proof, the address of that page is lost.
    Then return the address of the step, which shows the person its form again. A step on the security pages
    would only ask for the proof again. For such a step, return the address of the list of these pages.
    """
    request: HttpRequest = context["request"]
    came_from = request.headers.get("Referer", "")
    if _is_local(request, came_from) and "/reauthenticate/" not in came_from:
        return came_from
    address = _next_address(request)
    match = _match_of(address)
    has_form = match and (match.namespace == "admin" or (match.url_name or "").startswith("portal_"))
    return address if has_form else reverse("mfa_index")


def _next_address(request: HttpRequest) -> str:
    address = request.POST.get(REDIRECT_FIELD_NAME) or request.GET.get(REDIRECT_FIELD_NAME, "")
    return address if address.startswith("/") and _is_local(request, address) else ""


def _is_local(request: HttpRequest, address: str) -> bool:
    return url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )


def _match_of(address: str) -> ResolverMatch | None:
    try:
        return resolve(address.partition("?")[0]) if address else None
    except Resolver404:
        return None
