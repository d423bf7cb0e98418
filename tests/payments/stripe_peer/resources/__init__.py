"""Stripe's objects in the peer, such as intents, charges, refunds, disputes and accounts."""
