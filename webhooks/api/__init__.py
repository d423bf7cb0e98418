"""The merchant API of webhooks."""
