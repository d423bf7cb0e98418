"""Reads from the provider: one payment after a notification, all payments each night, and the balance."""
