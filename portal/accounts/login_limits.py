"""Limits on login attempts and on login mails, counted in PostgreSQL (rule portal.login)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import QuerySet

from config.lib import batches, clock, crypto, quota
from config.lib.web import address as network
from portal.models import AuditEntry, LoginAttempt

ACCOUNT = ("account_digest",)
ADDRESS = ("address_digest",)
PAIR = ACCOUNT + ADDRESS


class Limit(NamedTuple):
    """A limit on attempts that have equal values in the fields that `per` names."""

    per: tuple[str, ...]
    quota: quota.Limit


def _build_limit(per: tuple[str, ...], maximum: int, within: timedelta) -> Limit:
    return Limit(per, quota.Limit(maximum, within))


HALF_HOUR, HOUR, DAY = timedelta(minutes=30), timedelta(hours=1), timedelta(days=1)
# If several limits are reached, the first one decides which message the person sees.
LIMITS: dict[str, tuple[Limit, ...]] = {
    "password": (
        _build_limit(ACCOUNT, 50, HOUR),
        _build_limit(PAIR, 10, HALF_HOUR),
        _build_limit(ADDRESS, 100, HOUR),
    ),
    # Only the person who is logged in can reach this limit, so strangers cannot use it to lock the account.
    "password_again": (_build_limit(ACCOUNT, 10, HALF_HOUR),),
    "second_factor": (_build_limit(PAIR, 10, HALF_HOUR), _build_limit(ACCOUNT, 50, DAY)),
    # A login with only a passkey does not name an account.
    "passkey": (_build_limit(ADDRESS, 100, HOUR),),
    # For these attempts, `account` identifies the session and the mailed code.
    "mailed_code": (_build_limit(ACCOUNT, 3, HOUR),),
    "code_mail": (
        _build_limit(PAIR, 5, HOUR),
        _build_limit(ACCOUNT, 20, HOUR),
        _build_limit(ADDRESS, 30, HOUR),
    ),
    "reset_mail": (_build_limit(ACCOUNT, 5, HOUR), _build_limit(ADDRESS, 30, HOUR)),
}
GUESSES = ("password", "password_again", "second_factor")
RETENTION = 2 * DAY  # attempts are deleted after this time, which is longer than the period of any limit
KNOWN_ADDRESS_PERIOD = 90 * DAY  # how long an address counts as known after a login


class TooManyAttempts(Exception):
    """Raised if a limit is reached. The attempt was not counted and must not be made."""

    def __init__(self, kind: str, limit: Limit) -> None:
        super().__init__(kind)
        self.kind, self.limit = kind, limit


def count_attempt(kind: str, *, account: str, address: str) -> LoginAttempt:
    """Count an attempt before it is made, so that parallel attempts are all counted. Raises TooManyAttempts.

    `account` is the text that was typed. The function does the same work whether or not the account exists.
    """
    digests_by_field = {
        "account_digest": _account_digests(account),
        **network.caller_digests("login address", address),
    }
    attempt = LoginAttempt(kind=kind, **network.first_digests(digests_by_field))
    attempt.digests_by_field = digests_by_field
    with transaction.atomic(savepoint=True):
        quota.lock_digests("login", *(digest for digests in digests_by_field.values() for digest in digests))
        attempt.created_at = clock.now()
        for limit in LIMITS[kind]:
            if _is_reached(limit, attempt) and not _is_limit_waived(limit, kind, account, address):
                raise TooManyAttempts(kind, limit)
        attempt.save(force_insert=True)
    return attempt


def is_limit_reached(attempt: LoginAttempt) -> bool:
    """Return whether the next attempt like this one will be refused."""
    attempt.created_at = clock.now()
    return any(_is_reached(limit, attempt) for limit in LIMITS[attempt.kind])


def clear_attempts(attempt: LoginAttempt) -> None:
    """After a success, delete the attempt, and earlier attempts of the same kind, account and address."""
    _similar_attempts(attempt, PAIR).delete()


def forgive_account(account: str) -> None:
    """Delete all password and second-factor attempts for an account whose password has changed."""
    LoginAttempt.objects.filter(kind__in=GUESSES, account_digest__in=_account_digests(account)).delete()


def delete_old() -> None:
    """Delete attempts that are so old that no limit counts them."""
    batches.delete(LoginAttempt.objects.filter(created_at__lt=clock.now() - RETENTION))


def _is_reached(limit: Limit, attempt: LoginAttempt) -> bool:
    return any(
        quota.locked_until(attempts, attempts_quota, attempt.created_at) is not None
        for attempts, attempts_quota in _counted_attempts(limit, attempt)
    )


def _counted_attempts(
    limit: Limit, attempt: LoginAttempt
) -> Iterator[tuple[QuerySet[LoginAttempt], quota.Limit]]:
    """Yield the attempts that count towards a limit, with the quota for them.

    For a limit per address, also yield the attempts from the address's /48 network, with the quota for the
    network.
    """
    yield _similar_attempts(attempt, limit.per), limit.quota
    if "address_digest" in limit.per and attempt.site_digest:
        per = tuple(name.replace("address", "site") for name in limit.per)
        yield _similar_attempts(attempt, per).filter(quota.HAS_SITE), limit.quota.of_site()


def _similar_attempts(attempt: LoginAttempt, fields: tuple[str, ...]) -> QuerySet[LoginAttempt]:
    """Return attempts of the same kind that have the same digests in these fields, under any lookup key."""
    same_digests = {f"{name}__in": attempt.digests_by_field[name] for name in fields}
    return LoginAttempt.objects.filter(kind=attempt.kind, **same_digests)


def _account_digests(account: str) -> list[str]:
    return crypto.keyed_digests("login account", account.strip().lower())


def _is_limit_waived(limit: Limit, kind: str, account: str, address: str) -> bool:
    """Return whether the limit is waived, because the account has logged in from this address recently.

    If strangers request many login codes for an account, its owner can therefore still log in.
    """
    if kind != "code_mail" or limit.per != ACCOUNT:
        return False
    logins = AuditEntry.objects.filter(action="logged_in", created_at__gt=clock.now() - KNOWN_ADDRESS_PERIOD)
    return logins.filter(user__email__iexact=account.strip(), address=address or None).exists()
