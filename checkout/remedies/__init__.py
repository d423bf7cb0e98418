"""Operators' remedies for stuck money. Each of them asks the provider before it changes a row."""
