"""Database connections. Some tests use a real streaming replica (standby.py)."""
