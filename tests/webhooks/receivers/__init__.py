"""Receivers of every kind, and connections to them."""
