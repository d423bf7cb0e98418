"""Customers' phone numbers, and the customer data that a merchant sends before a code proves the number."""
