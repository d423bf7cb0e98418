"""allauth's passkey forms, with limits on the size of credentials and on the number of attempts.

Rule portal.passkeys.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from allauth.core import context
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn import forms as webauthn
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from django import forms
from django.conf import settings
from fido2.cose import CoseKey
from fido2.utils import websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    CollectedClientData,
    RegistrationResponse,
)

from config.lib import strict_json
from config.lib.web import address, origins
from portal import audit
from portal.accounts import login_limits
from portal.models import LoginAttempt, User

# The maximum number of characters in a credential. Most credentials have a few hundred, and one with an
# attestation has a few thousand.
LONGEST = 8 * 1024
LONGEST_NAME = 60
MAX_PASSKEYS = 10  # per person
REFUSED = "This passkey did not work. Try again, or use another way to prove who you are."
TOO_MANY_ATTEMPTS = "Too many attempts have failed. Try again later."
# The errors that fido2 raises for malformed data.
_MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    UnsupportedAlgorithm,
    ValueError,
    struct.error,
)


class CredentialField(forms.CharField):
    """The authenticator's response in JSON. The cleaned value is a dictionary."""

    widget = forms.HiddenInput

    def __init__(self) -> None:
        super().__init__(max_length=LONGEST)

    def clean(self, value: Any) -> dict[str, Any]:
        try:
            text: str = super().clean(value)
            credential = strict_json.parse(text.encode())
        except (forms.ValidationError, strict_json.InvalidJson):
            raise forms.ValidationError(REFUSED) from None
        if not isinstance(credential, dict):
            raise forms.ValidationError(REFUSED)
        return credential


class AddPasskeyForm(webauthn.AddWebAuthnForm):
    """The form for a new passkey and its name."""

    name = forms.CharField(
        max_length=LONGEST_NAME,
        required=False,
        error_messages={"max_length": f"Use at most {LONGEST_NAME} characters."},
    )
    credential = CredentialField()
    passwordless = None  # a login with any passkey works without a password

    def clean_credential(self) -> dict[str, Any]:
        """Return only the parts of the credential that logins need, in canonical form."""
        if (
            Authenticator.objects.filter(user=self.user, type=Authenticator.Type.WEBAUTHN).count()
            >= MAX_PASSKEYS
        ):
            raise forms.ValidationError(
                f"You have {MAX_PASSKEYS} passkeys, which is the maximum. Remove one first."
            )
        with _unify_refusals():
            parsed = RegistrationResponse.from_dict(self.cleaned_data["credential"])
            _check_origin(parsed.response.client_data)
            _check_key(parsed.response.attestation_object.auth_data.credential_data)
        response = {
            "clientDataJSON": websafe_encode(parsed.response.client_data),
            "attestationObject": websafe_encode(parsed.response.attestation_object),
        }
        return {"id": parsed.id, "rawId": parsed.id, "type": "public-key", "response": response}

    def clean(self) -> dict[str, Any]:
        with _unify_refusals():
            cleaned: dict[str, Any] = super().clean()
        return cleaned


class PasskeyForm(webauthn.AuthenticateWebAuthnForm):
    """The form for a passkey as second factor after the password. It has the same limits as a code."""

    credential = CredentialField()

    def clean_credential(self) -> Authenticator:
        attempt = _count_attempt("second_factor", self.user.email)
        try:
            authenticator = _prove_authenticator(self.cleaned_data["credential"], super().clean_credential)
        except forms.ValidationError:
            if login_limits.is_limit_reached(attempt):
                audit.record_person_change(context.request, self.user, "second_factor_locked")
            raise
        login_limits.clear_attempts(attempt)
        return authenticator


class PasskeyAgainForm(PasskeyForm, webauthn.ReauthenticateWebAuthnForm):
    """The form in which a person who is already logged in uses a passkey as fresh proof of identity."""


class PasskeyLoginForm(webauthn.LoginWebAuthnForm):
    """The form for a login with a passkey instead of e-mail and password.

    An unknown passkey and an invalid response cause the same error.
    """

    credential = CredentialField()

    def clean_credential(self) -> Authenticator:
        attempt = count_login_attempt()
        authenticator = _prove_authenticator(self.cleaned_data["credential"], super().clean_credential)
        login_limits.clear_attempts(attempt)
        return authenticator


def count_login_attempt() -> LoginAttempt:
    """Count a passkey login attempt from the caller's address. Raises ValidationError."""
    return _count_attempt("passkey", address.caller_address(context.request))


def lock_person(user_id: Any) -> None:
    """Lock the person until the end of the transaction, so that passkeys are added one after the other."""
    User.objects.select_for_update(no_key=True).get(pk=user_id)


def _count_attempt(kind: str, account: str) -> LoginAttempt:
    try:
        return login_limits.count_attempt(
            kind, account=account, address=address.caller_address(context.request)
        )
    except login_limits.TooManyAttempts:
        raise forms.ValidationError(TOO_MANY_ATTEMPTS, code="too_many") from None


def _prove_authenticator(credential: dict[str, Any], check: Callable[[], Authenticator]) -> Authenticator:
    with _unify_refusals():
        _check_origin(AuthenticationResponse.from_dict(credential).response.client_data)
        return check()


def _check_origin(client_data: CollectedClientData) -> None:
    """Raise ValueError if a page with a different origin, such as a subdomain, requested the passkey."""
    if client_data.origin != origins.origin_of(settings.PORTAL_URL):
        raise ValueError("another origin")


def _check_key(credential: AttestedCredentialData | None) -> None:
    """Raise one of the _MALFORMED errors if the key cannot verify signatures."""
    if credential is None or credential.public_key.ALGORITHM not in CoseKey.supported_algorithms():
        raise ValueError("no public key, or one of an algorithm that we have not offered")
    with suppress(InvalidSignature):
        credential.public_key.verify(b"", b"")


@contextmanager
def _unify_refusals() -> Iterator[None]:
    """Raise the same ValidationError for every fault in an authenticator's response."""
    try:
        yield
    except (forms.ValidationError, *_MALFORMED):
        raise forms.ValidationError(REFUSED, code="refused") from None
