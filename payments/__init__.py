"""Merchants and their money: the port to the provider, one call and its record, the ledger, discrepancies."""
