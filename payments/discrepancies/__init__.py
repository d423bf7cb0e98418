"""Discrepancies: the table of their kinds, how to report and close them, and their pages in the admin."""
