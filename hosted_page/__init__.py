"""The payer's pages: sign in, split, pay, and what became of it."""
