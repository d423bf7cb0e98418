"""Discrepancies: the table of their kinds, how they are reported and closed, and their pages in the admin."""
