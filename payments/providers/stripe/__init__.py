"""The adapter for Stripe. It makes card payments with PaymentIntents, through Stripe's own library."""
