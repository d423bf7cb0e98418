"""Customers before a code proves them."""
