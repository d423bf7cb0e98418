"""The proof that the ledger and the statuses agree: its invariants, and the checkouts that break one of them."""
