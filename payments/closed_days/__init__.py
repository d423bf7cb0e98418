"""The closed days of the ledger. Balances are read from their sums."""
