"""The sums of closed days."""
