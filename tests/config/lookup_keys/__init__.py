"""The rotation of LOOKUP_KEY: which rows are found before, during and after it."""
