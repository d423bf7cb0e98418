"""The payers' pages: sign-in, split, payment, and the outcome of the payment."""
