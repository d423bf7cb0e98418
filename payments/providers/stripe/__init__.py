"""Stripe: cards by its PaymentIntents, asked by its own library."""
