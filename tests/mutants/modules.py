"""The modules that are mutated, in slices. Each has the tests that must fail (paths relative to `tests`)."""

_MONEY: dict[str, tuple[str, ...]] = {
    "payments/operation_queue.py": (
        "payments/test_operation_queue.py",
        "checkout/in_doubt",
        "checkout/test_operation_recovery.py",
    ),
    "payments/planning.py": (
        "payments/test_planning.py",
        "checkout/in_doubt",
        "checkout/remedies/test_sending.py",
    ),
    "payments/ledger.py": ("payments/test_ledger.py", "payments/test_operations.py", "checkout/settling"),
    "payments/disputes.py": ("payments/test_disputes.py", "checkout/syncing", "checkout/settling"),
    "checkout/operation_recovery.py": (
        "payments/test_planning.py",
        "checkout/test_operation_recovery.py",
        "checkout/in_doubt",
        "checkout/test_outcomes.py",
    ),
    "checkout/outcomes.py": ("checkout/test_outcomes.py", "checkout/in_doubt", "checkout/syncing"),
    "checkout/settling/cards.py": ("checkout/settling", "checkout/remedies"),
    "checkout/settling/amounts_owed.py": (
        "checkout/settling",
        "checkout/remedies",
        "checkout/in_doubt/test_keys.py",
    ),
    "checkout/settling/settle.py": ("checkout/settling", "checkout/remedies"),
    "checkout/settling/closings.py": ("checkout/settling", "checkout/syncing"),
    "checkout/syncing/refunds.py": ("checkout/syncing", "checkout/restore"),
    "checkout/syncing/captures.py": ("checkout/syncing", "checkout/restore"),
}

_WEBHOOKS: dict[str, tuple[str, ...]] = {
    "webhooks/retries.py": (
        "webhooks/test_retries.py",
        "webhooks/test_delivery.py",
        "webhooks/test_resending.py",
        "portal/deliveries",
    ),
    "webhooks/signing.py": ("webhooks/test_signing.py",),
    "config/lib/leases.py": (
        "config/lib/test_leases.py",
        "hosted_page/sms/test_outbox.py",
        "portal/mail/test_outbox.py",
        "checkout/syncing/test_notifications.py",
    ),
    "webhooks/delivery.py": (
        "webhooks/test_delivery.py",
        "webhooks/test_statements.py",
        "webhooks/test_resending.py",
        "webhooks/test_health.py",
        "webhooks/queue",
    ),
    "webhooks/health.py": ("webhooks/test_health.py", "webhooks/test_statements.py"),
    "webhooks/subscriptions.py": (
        "webhooks/test_subscriptions.py",
        "webhooks/queue/test_approval.py",
        "webhooks/queue/test_rotation.py",
    ),
}

_CHECKOUT: dict[str, tuple[str, ...]] = {
    "checkout/states.py": ("checkout/test_states.py",),
    "checkout/expiry.py": (
        "checkout/test_expiry.py",
        "checkout/test_tasks.py",
        "checkout/in_doubt/test_payments_in_doubt.py",
        "checkout/test_given_up_cards.py",
    ),
    "checkout/captures.py": (
        "checkout/test_captures.py",
        "checkout/in_doubt/test_accepted.py",
        "checkout/in_doubt/test_payments_in_doubt.py",
        "payments/test_bulkheads.py",
    ),
    "checkout/cancellations.py": ("checkout/test_cancellations.py",),
    "checkout/pledges.py": (
        "checkout/test_pledges.py",
        "checkout/split/test_share_rows.py",
        "checkout/test_share_outcomes.py",
        "hosted_page/test_ended_pledges.py",
    ),
    "checkout/api/idempotency.py": (
        "checkout/api/test_idempotency.py",
        "checkout/api/test_freed_keys.py",
        "checkout/api/test_customer.py",
        "config/lib/web/test_request_id.py",
    ),
    "checkout/split/item_amounts.py": ("checkout/split/test_item_amounts.py",),
    "checkout/split/share_rows.py": ("checkout/split/test_share_rows.py", "checkout/test_pledges.py"),
    "checkout/split/split_amounts.py": ("checkout/split/test_split_amounts.py",),
    "checkout/mate_shares.py": (
        "checkout/test_mate_shares.py",
        "checkout/test_pledges.py",
        "checkout/test_share_outcomes.py",
        "checkout/split/test_share_rows.py",
        "checkout/group",
    ),
}

SLICES = {"money": _MONEY, "webhooks": _WEBHOOKS, "checkout": _CHECKOUT}
MODULES = _MONEY | _WEBHOOKS | _CHECKOUT


def chosen_modules(part: str) -> list[str]:
    """Return the modules of the slice with this name, or the modules whose path contains this text."""
    return list(SLICES.get(part) or (module for module in MODULES if part in module))
