"""Tests of phone numbers, and of the customer data that a merchant sends with an order."""
