"""The connections, with a real replica: tests/config/lib/database/standby.py."""
