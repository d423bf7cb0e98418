"""Reads one payment at the provider, and records the movements that are missing in our database."""
