"""Reads one payment from the provider's books, and records the movements that are missing here."""
