"""Customers before a code proves them: how numbers are parsed, and the data that a merchant sent."""
