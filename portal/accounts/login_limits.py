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
    """A quota for attempts that have the same values in the fields that `per` names."""

    per: tuple[str, ...]
    quota: quota.Limit


def _build_limit(per: tuple[str, ...], maximum: int, within: timedelta) -> Limit:
    return Limit(per, quota.Limit(maximum, within))


HALF_HOUR, HOUR, DAY = timedelta(minutes=30), timedelta(hours=1), timedelta(days=1)
# The first limit that is reached decides which message the person sees.
LIMITS: dict[str, tuple[Limit, ...]] = {
    "password": (
        _build_limit(ACCOUNT, 50, HOUR),
        _build_limit(PAIR, 10, HALF_HOUR),
        _build_limit(ADDRESS, 100, HOUR),
    ),
    "password_again": (
        _build_limit(ACCOUNT, 10, HALF_HOUR),
    ),  # only logged-in people get here, so a stranger cannot use it up
    "second_factor": (_build_limit(PAIR, 10, HALF_HOUR), _build_limit(ACCOUNT, 50, DAY)),
    "passkey": (_build_limit(ADDRESS, 100, HOUR),),  # login with only a passkey: the account is unknown
    "mailed_code": (_build_limit(ACCOUNT, 3, HOUR),),  # counted per mailed code instead of per account
    "code_mail": (
        _build_limit(PAIR, 5, HOUR),
        _build_limit(ACCOUNT, 20, HOUR),
        _build_limit(ADDRESS, 30, HOUR),
    ),
    "reset_mail": (_build_limit(ACCOUNT, 5, HOUR), _build_limit(ADDRESS, 30, HOUR)),
}
GUESSES = ("password", "password_again", "second_factor")
KEPT = 2 * DAY  # longer than any limit looks back
KNOWN = 90 * DAY  # how long an address counts as known after a login from it


class TooMany(Exception):
    """A limit is reached; the attempt was not counted and must not be made."""

    def __init__(self, kind: str, limit: Limit) -> None:
        super().__init__(kind)
        self.kind, self.limit = kind, limit


def spend(kind: str, *, account: str, address: str) -> LoginAttempt:
    """Count an attempt before it is made, so that parallel attempts are all counted. Raises TooMany.

    `account` is the text that was typed, whether or not the account exists. The work is the same in both
    cases.
    """
    alike = {"account_digest": _account_digests(account), **network.caller_digests("login address", address)}
    attempt = LoginAttempt(kind=kind, **network.first(alike))
    attempt.alike = alike
    with transaction.atomic(savepoint=True):
        quota.lock_digests("login", *(digest for digests in alike.values() for digest in digests))
        attempt.created_at = clock.now()
        for limit in LIMITS[kind]:
            if _is_reached(limit, attempt) and not _is_spared(limit, kind, account, address):
                raise TooMany(kind, limit)
        attempt.save(force_insert=True)
    return attempt


def is_spent(attempt: LoginAttempt) -> bool:
    """Return whether the next attempt like this one will be refused."""
    attempt.created_at = clock.now()
    return any(_is_reached(limit, attempt) for limit in LIMITS[attempt.kind])


def forgive(attempt: LoginAttempt) -> None:
    """Delete a successful attempt, and failed attempts of the same kind, account and address."""
    _similar_attempts(attempt, PAIR).delete()


def forgive_account(account: str) -> None:
    """Delete all password and second-factor attempts for an account with a new password."""
    LoginAttempt.objects.filter(kind__in=GUESSES, account_digest__in=_account_digests(account)).delete()


def delete_old() -> None:
    """Delete the attempts that are too old for every limit."""
    batches.delete(LoginAttempt.objects.filter(created_at__lt=clock.now() - KEPT))


def _is_reached(limit: Limit, attempt: LoginAttempt) -> bool:
    return any(
        quota.locked_until(alike, counted, attempt.created_at) is not None
        for alike, counted in _counted_attempts(limit, attempt)
    )


def _counted_attempts(
    limit: Limit, attempt: LoginAttempt
) -> Iterator[tuple[QuerySet[LoginAttempt], quota.Limit]]:
    """Yield the attempts that a limit counts, each with a quota: first for the address, then for its /48."""
    yield _similar_attempts(attempt, limit.per), limit.quota
    if "address_digest" in limit.per and attempt.site_digest:
        per = tuple(name.replace("address", "site") for name in limit.per)
        yield _similar_attempts(attempt, per).filter(quota.HAS_SITE), limit.quota.of_site()


def _similar_attempts(attempt: LoginAttempt, fields: tuple[str, ...]) -> QuerySet[LoginAttempt]:
    """Return the attempts of the same kind with the same digests in these fields, under any lookup key."""
    shared = {f"{name}__in": attempt.alike[name] for name in fields}
    return LoginAttempt.objects.filter(kind=attempt.kind, **shared)


def _account_digests(account: str) -> list[str]:
    return crypto.keyed_digests("login account", account.strip().lower())


def _is_spared(limit: Limit, kind: str, account: str, address: str) -> bool:
    """Return whether the limit is waived for a known address, so that strangers cannot lock it out."""
    if kind != "code_mail" or limit.per != ACCOUNT:
        return False
    logins = AuditEntry.objects.filter(action="logged_in", created_at__gt=clock.now() - KNOWN)
    return logins.filter(user__email__iexact=account.strip(), address=address or None).exists()
