"""English: a clock with 24 hours, as on all pages."""
