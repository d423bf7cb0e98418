"""The formats that Django uses for English by default. The clock has 24 hours, as on all pages."""

DATETIME_FORMAT = "j M Y H:i:s"
