"""The formats of dates and times, by language."""
