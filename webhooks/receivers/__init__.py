"""Webhook receivers for merchants to copy, one per language, and signed vectors for any other language.

Rules docs.receivers and docs.every_card.
"""
