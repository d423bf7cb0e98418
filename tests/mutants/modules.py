"""The modules that are mutated, each with the tests that must fail (paths relative to `tests`)."""

MODULES: dict[str, tuple[str, ...]] = {
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
