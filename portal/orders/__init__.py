"""Checkouts as the merchant sees them: search, detail, timeline."""
