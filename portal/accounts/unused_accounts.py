"""Unused accounts. The service warns the person, and disables the account after 90 days without a login.

The person can enable it again. Rule portal.unused_accounts.
"""

from datetime import datetime, timedelta

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from django.contrib import messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from config.lib import clock
from portal import audit
from portal.accounts import sessions
from portal.models import User

LOGIN_SESSION_KEY = "account_login"  # session key under which allauth stores an unfinished login
LIMIT = timedelta(days=90)  # since the last login or, without a login, since the person joined
NOTICE = timedelta(days=14)  # from the warning until the account is disabled
MAX_PER_RUN = 500  # the maximum number of warnings, and of disabled accounts, in one run of the task
DISABLED = f"This account is disabled because it was not used for {LIMIT.days} days. To use it again, "
# The proofs that a disabled account needs, by allauth's name. Each entry has the message that asks for the
# proof, and the page on which the person gives it.
PROOFS = {
    "code": (f"{DISABLED}ask for a code by e-mail here.", "account_request_login_code"),
    "password": (f"{DISABLED}log in with your password now, or reset it.", "account_login"),
}


def warn_and_disable() -> None:
    """Warn people who have not used their account for 76 days. Disable accounts 14 days after the warning."""
    now = clock.now()
    for user in _unused_since(now - LIMIT + NOTICE).filter(disuse_warned_at=None)[:MAX_PER_RUN]:
        _warn_person(user, now)
    for user in _accounts_due(now)[:MAX_PER_RUN]:
        _disable_account(user, now)


def ask_for_proofs(request: HttpRequest, user: User) -> HttpResponse | None:
    """Return a redirect to the proof that a disabled account still lacks, or None if the login can continue.

    A disabled account needs a code by e-mail and the password, in either order, but in the same browser.
    """
    if user.disabled_for_disuse_at is None:
        return None
    given_proofs = {record["method"] for record in get_authentication_records(request, user)}
    for method, (message, page) in PROOFS.items():
        if method not in given_proofs:
            request.session.pop(LOGIN_SESSION_KEY, None)
            messages.error(request, message)
            return redirect(page)
    return None


def record_use(request: HttpRequest, user: User) -> None:
    """Enable the account if it was disabled, and withdraw the warning.

    Call this function after a login and after a password reset.
    """
    rows = User.objects.filter(pk=user.pk)
    with transaction.atomic(durable=True):
        if rows.filter(disabled_for_disuse_at__isnull=False).update(disabled_for_disuse_at=None):
            audit.record_person_change(request, user, "account_enabled")
        rows.filter(disuse_warned_at__isnull=False).update(disuse_warned_at=None)
    user.disabled_for_disuse_at = user.disuse_warned_at = None


def _unused_since(before: datetime) -> QuerySet[User]:
    """Return the enabled accounts without a login since `before`. They include operators' accounts."""
    unused = Q(last_login__lt=before) | Q(last_login=None, date_joined__lt=before)
    return User.objects.filter(unused, is_active=True, disabled_for_disuse_at=None).order_by("pk")


def _accounts_due(now: datetime) -> QuerySet[User]:
    return _unused_since(now - LIMIT).filter(disuse_warned_at__lte=now - NOTICE)


@transaction.atomic(durable=True)
def _warn_person(user: User, now: datetime) -> None:
    rows = _unused_since(now - LIMIT + NOTICE).filter(pk=user.pk, disuse_warned_at=None)
    # No row is updated if the person has logged in after the list was read.
    if rows.update(disuse_warned_at=now):
        ends_at = max((user.last_login or user.date_joined) + LIMIT, now + NOTICE)
        get_adapter().send_mail("account/email/account_unused", user.email, {"ends_at": ends_at})


@transaction.atomic(durable=True)
def _disable_account(user: User, now: datetime) -> None:
    if _accounts_due(now).filter(pk=user.pk).update(disabled_for_disuse_at=now):
        sessions.end_all(user)
        audit.record_person_change(None, user, "account_disabled")
        get_adapter().send_mail("account/email/account_disabled", user.email, {})
