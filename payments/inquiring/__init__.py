"""Reads from the provider: one payment's books after a notification, all books each night, and the balance."""
