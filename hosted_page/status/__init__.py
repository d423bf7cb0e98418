"""The current state of an order or of a share, in words for people."""
