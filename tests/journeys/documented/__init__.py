"""The documentation's examples, run against the running service."""
