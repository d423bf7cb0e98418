"""Checkouts as merchants see them: search, detail, timeline."""
