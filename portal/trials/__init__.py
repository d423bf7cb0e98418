"""Checklist cases that the sandbox runs: a real order passes through the merchant's integration."""
