"""Tools without domain knowledge: they know neither merchants nor money."""
