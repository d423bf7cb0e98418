"""Writes many orders, for the benchmark and for viewing the pages on a large database."""
