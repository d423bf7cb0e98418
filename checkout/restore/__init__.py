"""Repair after a restored back-up: records again the movements that the database has lost."""
