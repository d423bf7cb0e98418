"""The proof that the ledger and the states agree: what always holds, and who breaks it."""
