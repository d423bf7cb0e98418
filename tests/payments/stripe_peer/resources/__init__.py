"""Stripe's objects in the peer: intents, charges, refunds, disputes and accounts."""
