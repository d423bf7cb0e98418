"""Tools with no domain: they know neither merchants nor money."""
