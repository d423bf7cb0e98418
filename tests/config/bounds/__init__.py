"""Limits on the size and CPU time of every input from outside."""
