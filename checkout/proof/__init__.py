"""The proof that ledger and statuses agree: the invariants, and the checkouts that break one."""
