"""Follows the provider's books: reads those of one payment, and records here what moved."""
