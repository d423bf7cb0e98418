"""What the documentation offers, tried on the running service."""
