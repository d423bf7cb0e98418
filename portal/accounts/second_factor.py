"""The second factor: an authenticator app or a passkey, and recovery codes.

A code is accepted only once. Rule portal.second_factor.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import pyotp
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from config.lib import crypto
from portal.models import User

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
CODES = (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES)
SET_UP = "mfa_activate_totp"  # the page where a person without a second factor sets one up
LAST_COUNTER = "last_counter"  # key in an authenticator's data: the half minute of the latest accepted code


def is_second_factor_missing(person: Any) -> bool:
    """Return whether this environment requires a second factor and the person has none.

    Recovery codes do not count as a factor, because they only replace a lost one (MfaAdapter.is_mfa_enabled).
    """
    return bool(settings.SECOND_FACTOR_REQUIRED and not is_mfa_enabled(person))


def delete_orphan_codes(user: Any) -> None:
    """Delete the recovery codes of a person who no longer has a second factor.

    After an operator deletes the factor on a lost phone, the old codes must not stay valid, because the
    finder of the phone might have them. The person gets new codes with the next factor.
    """
    if not is_mfa_enabled(user):
        Authenticator.objects.filter(user=user).delete()


def require_second_factor(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorate an account page so that a person without a second factor first sets one up."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and is_second_factor_missing(request.user):
            return redirect(SET_UP)
        return view(request, *args, **kwargs)

    return guarded


def use_code(user: User, code: str) -> Authenticator | None:
    """Use up a code and return its authenticator. Return None if the code is wrong or was used before."""
    for authenticator in Authenticator.objects.filter(user=user, type__in=CODES).order_by("-type"):
        if authenticator.type == Authenticator.Type.TOTP:
            is_right = _use_app_code(authenticator, code)
        else:
            is_right = authenticator.wrap().validate_code(code)
        if is_right:
            return authenticator
    return None


@transaction.atomic(durable=True)
def _use_app_code(authenticator: Authenticator, code: str) -> bool:
    """Use up a code from the authenticator app. Return whether it was accepted.

    The code must belong to the current half minute or the one before or after it, and be newer than the last
    accepted code.
    """
    locked = Authenticator.objects.select_for_update(no_key=True).get(pk=authenticator.pk)
    app = pyotp.TOTP(crypto.decrypt(locked.data["secret"]))
    entered_code = "".join(filter(str.isalnum, code))
    now = app.timecode(timezone.now())
    for counter in range(now - settings.MFA_TOTP_TOLERANCE, now + settings.MFA_TOTP_TOLERANCE + 1):
        is_right = pyotp.utils.strings_equal(entered_code, app.generate_otp(counter))
        if is_right and counter > locked.data.get(LAST_COUNTER, 0):
            locked.data[LAST_COUNTER] = counter
            locked.save(update_fields=["data"])
            return True
    return False
