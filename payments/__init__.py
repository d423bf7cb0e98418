"""Merchants and their money: the port to the provider, operations, movements, the ledger, discrepancies."""
