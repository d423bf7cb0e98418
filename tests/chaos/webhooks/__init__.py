"""Chaos tests of webhooks: a load of events, endpoints that misbehave, and several workers."""
