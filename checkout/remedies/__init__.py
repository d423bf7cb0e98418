"""What operators do about money that is stuck: ask the provider first, prove the ledger after."""
