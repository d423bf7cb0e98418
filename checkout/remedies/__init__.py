"""Operators' remedies for stuck money. Each remedy queries the provider before it changes a row."""
