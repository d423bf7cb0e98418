"""Repair after a restore: records again what the provider has moved and the database has lost."""
