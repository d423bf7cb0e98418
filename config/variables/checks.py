"""Checks of variables that depend on the environment or on each other. Each problem is a sentence with its remedy."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from config.variables.partners import (
    PAGE_SMS_SENDER,
    SANDBOX_PROVIDER,
    STRIPE_PROVIDER,
    TWILIO_SMS_SENDER,
)

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
DATABASES = ("DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_REPLICA_URL")
DIFFERENT_CHARACTERS = 16  # a random key of 50 characters has more different characters


def find_problems(values: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each problem. A missing variable was unreadable, and this is already reported."""
    environment = values["ENVIRONMENT"]
    found = [*_problems_of_partners(_Values(values), environment)]
    found += (
        _problems_in_local(_Values(values)) if environment == "local" else _problems_of_hosts(_Values(values))
    )
    if environment == "production":
        found += _problems_in_production(_Values(values))
    return [f"ENVIRONMENT={environment}: {problem}" for problem in found]


class _Values(dict[str, Any]):
    """The values by name. If a variable could not be read, its value is None, which no check refuses."""

    def __missing__(self, name: str) -> None:
        return None


def _problems_in_local(values: _Values) -> Iterator[str]:
    if values["BASE_URL"] and not is_loopback(values["BASE_URL"]):
        yield "BASE_URL must be a loopback address, because local is only for this machine."


def _problems_of_hosts(values: _Values) -> Iterator[str]:
    if values["BASE_URL"] and urlsplit(values["BASE_URL"]).scheme != "https":
        yield "BASE_URL must be an https address."
    if values["CHECKOUT_PAGE_URL"] and urlsplit(values["CHECKOUT_PAGE_URL"]).scheme != "https":
        yield "CHECKOUT_PAGE_URL must be an https address whose path is /pay."
    yield from _problems_of_keys(values)
    redis = values["REDIS_URL"] or ""
    if redis.startswith("rediss://") and "ssl_cert_reqs=required" not in redis:
        yield "REDIS_URL must contain ?ssl_cert_reqs=required. Otherwise, rediss:// trusts any server."
    if values["METRICS_TOKEN"] and len(values["METRICS_TOKEN"]) < 20:
        yield "METRICS_TOKEN must be 20 random characters or more."
    if values["SECOND_FACTOR_REQUIRED"] is False:
        yield "SECOND_FACTOR_REQUIRED can only be false in local. Remove it."
    for name in ("FAIL_POINTS", "WEBHOOK_LOOPBACK"):
        if values[name]:
            yield f"{name} is only for local. Remove it."


def _problems_of_keys(values: _Values) -> Iterator[str]:
    for name in ("SECRET_KEY", "LOOKUP_KEY"):
        key = values[name]
        if key and (len(key) < 50 or len(set(key)) < DIFFERENT_CHARACTERS):
            yield (f"{name} must be 50 random characters or more. Make one with: openssl rand -base64 48")


def _problems_of_partners(values: _Values, environment: str) -> Iterator[str]:
    is_sandbox = environment != "production"
    if values["PROVIDER"] and (values["PROVIDER"] == SANDBOX_PROVIDER) != is_sandbox:
        yield "PROVIDER must be the sandbox bank in local and sandbox, and a real provider in production."
    if values["SMS_SENDER"] and (values["SMS_SENDER"] == PAGE_SMS_SENDER) != is_sandbox:
        yield "SMS_SENDER must be the page in local and sandbox, and a real SMS sender in production."
    if values["PROVIDER"] == STRIPE_PROVIDER:
        for name in ("STRIPE_SECRET_KEY", "STRIPE_PUBLISHABLE_KEY", "STRIPE_WEBHOOK_SECRET"):
            if name in values and not values[name]:
                yield f"Set {name}, because PROVIDER is Stripe."
    if values["SMS_SENDER"] == TWILIO_SMS_SENDER:
        for name in ("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN"):
            if name in values and not values[name]:
                yield f"Set {name}, because SMS_SENDER is Twilio's."
        senders = [values[name] for name in ("TWILIO_FROM", "TWILIO_MESSAGING_SERVICE_SID") if name in values]
        if len(senders) == 2 and bool(senders[0]) == bool(senders[1]):
            yield "Set one of TWILIO_FROM and TWILIO_MESSAGING_SERVICE_SID."


def _problems_in_production(values: _Values) -> Iterator[str]:
    for name in DATABASES:
        if values[name] and not is_protected(values[name]):
            yield f"{name} must contain sslmode=verify-full, because the database is on another machine."
    if (values["REDIS_URL"] or "").startswith("redis://") and not is_loopback(values["REDIS_URL"]):
        yield "REDIS_URL must begin with rediss://, because Redis is on another machine."
    for name in ("STRIPE_API", "STRIPE_SCRIPT", "SENTRY_DSN", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        if (values[name] or "").startswith("http://"):
            yield f"{name} must be an https address."
    script = urlsplit(values["STRIPE_SCRIPT"] or "").hostname or ""
    if script and script != "stripe.com" and not script.endswith(".stripe.com"):
        yield "STRIPE_SCRIPT must be at Stripe, because it reads card numbers. Remove it."
    if values["EMAIL_USE_TLS"] is False:
        yield "EMAIL_USE_TLS must be true."
    if "*" in (values["ALLOWED_HOSTS"] or []):
        yield "ALLOWED_HOSTS must list host names, not *."
    if values["ERASURES_FILE"] == "":
        yield "Set ERASURES_FILE. Without it, a restored database has the erased people again."


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    return urlsplit(url).hostname in LOOPBACK


def is_protected(database: Mapping[str, str]) -> bool:
    """Return whether the connection to a database is protected: no other machine can read it or answer it."""
    host = database.get("hostaddr") or database.get("host") or ""
    is_local = not host or host.startswith("/") or host in LOOPBACK
    return is_local or database.get("sslmode") == "verify-full"
