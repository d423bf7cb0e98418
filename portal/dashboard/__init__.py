"""The home page: tasks for the merchant, figures, charts, the integration checklist."""
