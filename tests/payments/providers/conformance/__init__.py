"""Tests that every adapter must pass. A desk per provider acts as cardholder, bank and dashboard."""
