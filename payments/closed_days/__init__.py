"""The closed days of the ledger: their sums, from which balances are read."""
