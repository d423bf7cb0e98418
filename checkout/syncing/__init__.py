"""Following the provider's books: one payment is read there, and what moved is recorded here."""
