"""Database connections, also with a real streaming replica (standby.py)."""
