"""LOOKUP_KEY is replaced: what is found at each step."""
