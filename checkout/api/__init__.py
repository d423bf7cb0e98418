"""The merchant API of checkouts."""
