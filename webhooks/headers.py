"""Builds the headers of a delivery, with its signatures (rules signing.header, signing.fresh, signing.standard)."""

from functools import lru_cache

from config.lib import crypto
from config.lib.process import tracing
from webhooks import signing
from webhooks.delivery import Claimed

USER_AGENT = "MerchantCheckout-Webhooks/1"


@lru_cache(maxsize=10_000)
def _decrypt_secret(sealed_secret: str) -> str:
    return crypto.decrypt(sealed_secret)


def signed_headers(claimed: Claimed, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery. The signatures contain the database's time at the claim."""
    secrets = [_decrypt_secret(sealed) for sealed in claimed.sealed_secrets]
    at, trace = int(claimed.claimed_at.timestamp()), tracing.current_traceparent()
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Service-Event-Id": claimed.event_id,
        "X-Service-Event-Type": claimed.event_type,
        "X-Service-Delivery-Attempt": str(claimed.attempt_number),
        "X-Service-Timestamp": str(at),
        "X-Service-Signature": signing.sign(secrets, body, at),
        **signing.standard_headers(secrets, body, at, event_id=claimed.event_id),
        **({"traceparent": trace} if trace else {}),
    }
