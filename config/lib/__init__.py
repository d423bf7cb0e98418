"""Tools without domain knowledge: they do not depend on merchants or money."""
