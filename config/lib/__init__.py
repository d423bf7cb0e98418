"""Tools without domain knowledge: they do not know merchants or money."""
