"""The formats for English: Django's defaults, except that the clock has 24 hours, as on all pages."""

DATETIME_FORMAT = "j M Y H:i:s"
