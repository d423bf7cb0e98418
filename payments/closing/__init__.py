"""The ledger's days that are closed: their sums, from which balances are read."""
