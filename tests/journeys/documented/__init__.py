"""The documentation's examples, run against a running service."""
