"""Tests that every adapter must pass. Each provider has a desk: its cardholders, banks and dashboard."""
