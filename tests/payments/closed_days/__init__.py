"""The ledger's sums for closed days."""
