"""Operators' remedies for stuck money. Each asks the provider first and proves the ledger afterwards."""
