"""Money and whose it is: the port to the provider, one call and its record, the ledger, discrepancies."""
