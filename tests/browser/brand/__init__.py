"""A merchant's brand: their logo on payers' pages, and the settings' preview of it."""
