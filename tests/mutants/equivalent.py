"""Mutants that no test can kill. Each has the module, the original line, the changed line, and the reason."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A mutant that behaves like the module, so that no test can distinguish them."""

    module: str
    line: str
    changed: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "payments/disputes.py",
        'return rows.order_by("-status", "created_at")[:1]',
        'return rows.order_by("-status", "created_at")[: 2]',
        "Every caller takes the first row, or asks only whether there is one.",
    ),
    Equivalent(
        "payments/operation_queue.py",
        "return timedelta(seconds=min(2.0 ** min(times, 10), longest))",
        "return timedelta(seconds=min(2.0 ** min(times, 11), longest))",
        "No caller passes a longest delay of more than 600 seconds, and 2 ** 10 seconds is already longer.",
    ),
    Equivalent(
        "checkout/operation_recovery.py",
        "for operation in operation_queue.claim(limit=1, operation_uuid=operation_uuid):",
        "for operation in operation_queue.claim(limit= 2, operation_uuid=operation_uuid):",
        "The id of an operation selects at most one row.",
    ),
    Equivalent(
        "checkout/settling/cards.py",
        "key = PartKey(self.checkout.payment_id or UUID(int=0), None, share.pk)",
        "key = PartKey(self.checkout.payment_id or UUID(int= 1), None, share.pk)",
        "No payment has either id, so an order without a card has no such part.",
    ),
    *(
        Equivalent(
            "checkout/outcomes.py",
            "later = now + min(VOID_RETRY_DELAY * 4 ** min(times - 1, 7), MAX_VOID_RETRY_DELAY)",
            f"later = now + min(VOID_RETRY_DELAY * 4 ** min(times - 1, {power}), MAX_VOID_RETRY_DELAY)",
            "From the seventh refusal, the delay is longer than its maximum with any of these powers.",
        )
        for power in (6, 8)
    ),
    Equivalent(
        "checkout/settling/amounts_owed.py",
        "fits = planned.amount == self.amount or (self.at is None and planned.amount <= self.amount)",
        "fits = planned.amount == self.amount or (self.at is None and planned.amount < self.amount)",
        "The first condition covers equal amounts.",
    ),
    Equivalent(
        "webhooks/retries.py",
        "@dataclass(frozen=True)",
        "@dataclass(frozen=False)",
        "No code changes a schedule.",
    ),
    Equivalent(
        "webhooks/retries.py",
        "@dataclass(frozen=True, kw_only=True)",
        "@dataclass(frozen=False, kw_only=True)",
        "No code changes the object.",
    ),
    Equivalent(
        "webhooks/retries.py",
        "@dataclass(frozen=True, kw_only=True)",
        "@dataclass(frozen=True, kw_only=False)",
        "Every caller names the fields.",
    ),
    *(
        Equivalent(
            "webhooks/retries.py",
            "digest = hashlib.sha256(delivery_id.bytes + attempts.to_bytes(4)).digest()",
            f"digest = hashlib.sha256(delivery_id.bytes + attempts.to_bytes( {length})).digest()",
            "The digest spreads the retries as evenly with any fixed length.",
        )
        for length in (3, 5)
    ),
    *(
        Equivalent(
            "webhooks/retries.py",
            "share = int.from_bytes(digest[:8]) / (2**64 - 1)",
            f"share = int.from_bytes(digest[:8]) / (2**64 {changed})",
            "The difference is smaller than the precision of a float.",
        )
        for changed in ("- 2", "- 0", "+ 1")
    ),
    Equivalent(
        "webhooks/signing.py",
        "timestamp = timestamps[0]",
        "timestamp = timestamps[ -1]",
        "A header with more than one timestamp has already been refused.",
    ),
    *(
        Equivalent(
            "webhooks/signing.py",
            "@functools.lru_cache(maxsize=1024)",
            f"@functools.lru_cache(maxsize= {size})",
            "The size of the cache does not affect the result.",
        )
        for size in (1023, 1025)
    ),
    Equivalent(
        "webhooks/delivery.py",
        "@dataclass(frozen=True)",
        "@dataclass(frozen=False)",
        "No code changes a result.",
    ),
    *(
        Equivalent(
            "webhooks/delivery.py",
            "SWEEP_ROWS = 500",
            f"SWEEP_ROWS = {rows}",
            "The number only limits how many rows one statement ends.",
        )
        for rows in (499, 501)
    ),
    *(
        Equivalent(
            "webhooks/delivery.py",
            'CLAIM_LOCK_KEY = 0x636C6D  # first key of the advisory locks on endpoints: "clm" in ASCII',
            f'CLAIM_LOCK_KEY = {key}  # first key of the advisory locks on endpoints: "clm" in ASCII',
            "Any key that no other lock has is as good.",
        )
        for key in (6515820, 6515822)
    ),
    *(
        Equivalent(
            "webhooks/health.py",
            "return self.http_status is None and (self.duration_ms or 0) >= HUNG_MS",
            f"return self.http_status is None and (self.duration_ms or {missing}) >= HUNG_MS",
            "A missing duration is shorter than HUNG_MS with any of these numbers.",
        )
        for missing in (1, -1)
    ),
    Equivalent(
        "webhooks/health.py",
        "@dataclass(frozen=True)",
        "@dataclass(frozen=False)",
        "No code changes the object.",
    ),
    Equivalent(
        "webhooks/health.py",
        '"subscription_id": in_order[0].subscription_id,',
        '"subscription_id": in_order[ -1].subscription_id,',
        "All these attempts have the same endpoint.",
    ),
    *(
        Equivalent(
            "checkout/expiry.py",
            "PAGE = 200  # maximum number of checkouts on a page of a list",
            f"PAGE = {rows}  # maximum number of checkouts on a page of a list",
            "The number only limits how many checkouts one call ends.",
        )
        for rows in (199, 201)
    ),
    Equivalent(
        "checkout/api/idempotency.py",
        "KEPT_REFUSALS = {402, 422}",
        "KEPT_REFUSALS = { 401, 422}",
        "No call that has a key is answered with 401 or 402.",
    ),
    Equivalent(
        "checkout/api/idempotency.py",
        "new_key.save(force_insert=True)",
        "new_key.save(force_insert=False)",
        "Django inserts a new object whose primary key has a default.",
    ),
    *(
        Equivalent(
            "checkout/api/idempotency.py",
            line,
            line.replace(f"age < {limit}", f"age <= {limit}"),
            "The age never equals the limit to the microsecond.",
        )
        for line, limit in (
            ("if age < KEPT_FOR and (stored.status is not None or age < TAKEN_OVER_AFTER):", "KEPT_FOR"),
            (
                "if age < KEPT_FOR and (stored.status is not None or age < TAKEN_OVER_AFTER):",
                "TAKEN_OVER_AFTER",
            ),
            ("if age < KEPT_FOR and stored.request_digest not in digests:", "KEPT_FOR"),
        )
    ),
    *(
        Equivalent(
            "checkout/api/idempotency.py",
            "is_kept = 200 <= call.status < 300 or call.status in KEPT_REFUSALS",
            f"is_kept = {range_} or call.status in KEPT_REFUSALS",
            "No call is answered with the status 199, 299 or 300.",
        )
        for range_ in (
            "199 <= call.status < 300",
            "200 <= call.status < 301",
            "200 <= call.status < 299",
            "200 <= call.status <= 300",
        )
    ),
    Equivalent(
        "checkout/split/item_amounts.py",
        "if any(taken > most for taken, most in zip(add_units(*people), available, strict=True)):",
        "if any(taken > most for taken, most in zip(add_units(*people), available, strict=False)):",
        "The condition before has checked the lengths.",
    ),
    Equivalent(
        "checkout/split/share_rows.py",
        "for (position, share), token in zip(shares.items(), tokens, strict=True)",
        "for (position, share), token in zip(shares.items(), tokens, strict=False)",
        "There are as many tokens as shares.",
    ),
    Equivalent(
        "checkout/mate_shares.py",
        "for (name, units), cost in zip(requests, costs, strict=True)",
        "for (name, units), cost in zip(requests, costs, strict=False)",
        "There are as many costs as requests.",
    ),
    Equivalent(
        "checkout/captures.py",
        "while outcome.verdict == Verdict.PENDING and deadline.remaining() > ASK_AGAIN_SECONDS:",
        "while outcome.verdict == Verdict.PENDING and deadline.remaining() >= ASK_AGAIN_SECONDS:",
        "The time that remains, a float, never equals the pause.",
    ),
)
