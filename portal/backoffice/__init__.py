"""The operators' overview of the service: operations in doubt, overdue work, and the pumps."""
