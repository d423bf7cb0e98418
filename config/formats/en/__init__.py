"""English formats with a 24-hour clock, as on all pages."""
