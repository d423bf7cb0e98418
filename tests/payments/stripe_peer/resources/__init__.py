"""Stripe's things as the peer keeps them: intents, charges, refunds, disputes, accounts."""
