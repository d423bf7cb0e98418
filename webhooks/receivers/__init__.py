"""Receivers of webhooks for merchants to copy, one a language, and signed vectors for a receiver in any other."""
