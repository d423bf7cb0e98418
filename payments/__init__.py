"""Money and whose it is: operations at the provider, the ledger, what should not be."""
