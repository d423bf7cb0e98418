"""Signs and verifies webhook deliveries. You can copy this file to your backend: it uses only the standard library.

In a receiver, call `event = verify(header, raw_body, [secret], int(time.time()))`. `header` is the value of
X-Service-Signature. If the call raises an error, answer 400, and do not process, log or store the body.
"""

import base64
import functools
import hmac
import json
import secrets as randomness
from collections.abc import Sequence
from typing import Any, Literal

Reason = Literal["malformed_header", "no_matching_signature", "timestamp_out_of_tolerance", "invalid_json"]

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
TOLERANCE_SECONDS = 300
TIMESTAMP_DIGITS = 12


class VerificationError(Exception):
    """The delivery must be answered with 400. `reason` is one of the four reasons."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


def new_secret() -> str:
    """Return a new signing secret: "whsec_" and the standard base64 of 32 random bytes.

    Rule signing.secret.
    """
    return SECRET_PREFIX + base64.b64encode(randomness.token_bytes(SECRET_BYTES)).decode("ascii")


def sign(secrets: Sequence[str], body: bytes, at: int) -> str:
    """Return the value of X-Service-Signature, with one v1 entry for each secret, in the given order.

    Callers must put the newest secret first.
    """
    message = f"{at}.".encode("ascii") + body
    return ",".join([f"t={at}", *(f"v1={_sign_message(secret, message)}" for secret in secrets)])


def standard_headers(secrets: Sequence[str], body: bytes, at: int, *, event_id: str) -> dict[str, str]:
    """Return the three headers of a delivery that the Standard Webhooks specification requires.

    Rules signing.standard, signing.foreign.
    """
    message = f"{event_id}.{at}.".encode() + body
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{_standard_signature(secret, message)}" for secret in secrets),
    }


def verify(
    header: str | None, body: bytes, secrets: Sequence[str], now: int, tolerance: int = TOLERANCE_SECONDS
) -> dict[str, Any]:
    """Return the envelope in `body` if the header proves that the service has sent it.

    `header` is the value of X-Service-Signature, `body` is the raw request body, and `now` is the receiver's unix
    time. `tolerance` is the number of seconds by which `now` can differ from the header's `t`. Raises
    VerificationError. Rule signing.verify.
    """
    timestamp, signatures = _parse_header(header)
    # The signature is checked before the time, because an unsigned time can be forged.
    message = f"{timestamp}.".encode("ascii") + body
    known = [secret for secret in secrets if secret]  # anyone can sign with ""
    expected = [_sign_message(secret, message).encode("ascii") for secret in known]
    # Every pair is compared. Otherwise, the time that this takes would reveal which pair matched.
    if not sum(hmac.compare_digest(signature, digest) for signature in signatures for digest in expected):
        raise VerificationError("no_matching_signature")
    if abs(now - int(timestamp)) > tolerance:
        raise VerificationError("timestamp_out_of_tolerance")
    return _parse_envelope(body)


def _sign_message(secret: str, message: bytes) -> str:
    return hmac.digest(secret.encode("utf-8"), message, "sha256").hex()


def _standard_signature(secret: str, message: bytes) -> str:
    return base64.b64encode(hmac.digest(_standard_key(secret), message, "sha256")).decode("ascii")


@functools.lru_cache(maxsize=1024)
def _standard_key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX))


def _parse_header(header: str | None) -> tuple[str, list[bytes]]:
    """Return the header's `t` as it was sent, and its v1 signatures. Entries with other names are ignored."""
    entries = [entry.partition("=") for entry in (header or "").split(",")]
    timestamps = [text for scheme, _, text in entries if scheme == "t"]
    signatures = [text.encode("utf-8", "surrogatepass") for scheme, _, text in entries if scheme == "v1"]
    if not all(equals for _, equals, _ in entries) or len(timestamps) != 1 or not signatures:
        raise VerificationError("malformed_header")
    timestamp = timestamps[0]
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= TIMESTAMP_DIGITS):
        raise VerificationError("malformed_header")
    return timestamp, signatures


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _parse_envelope(body: bytes) -> dict[str, Any]:
    try:
        envelope = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise VerificationError("invalid_json") from None
    if not isinstance(envelope, dict):
        raise VerificationError("invalid_json")
    return envelope
