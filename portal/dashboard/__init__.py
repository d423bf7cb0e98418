"""The home page: what needs the merchant's attention, figures, charts, the integration checklist."""
