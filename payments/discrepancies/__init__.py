"""Discrepancies: the table of their kinds, the code that reports and closes them, and their admin pages."""
