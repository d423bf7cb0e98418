"""Stripe: card payments by its PaymentIntents, through its own library."""
