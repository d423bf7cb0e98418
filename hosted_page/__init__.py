"""The payer's pages: sign-in, split, payment, and its outcome."""
