"""The verbs of operators for money that is stuck. Each asks the provider first and proves the ledger afterwards."""
