"""Date and time formats, by language."""
