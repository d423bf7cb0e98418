"""The queue seen from outside: its rows, its log, and whoever meets there."""
