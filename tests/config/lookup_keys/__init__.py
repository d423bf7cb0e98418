"""The rotation of LOOKUP_KEY: the rows that are found before, during and after it."""
