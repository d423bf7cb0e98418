"""The operators' overview of the service: what is in doubt, what is late, and the pumps."""
