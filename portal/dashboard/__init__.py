"""The home page: what needs the merchant, figures, charts, the integration checklist."""
