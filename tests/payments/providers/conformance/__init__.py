"""Tests that every adapter must pass. Each provider has a desk, which acts as its payers, banks and staff."""
