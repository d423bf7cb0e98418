"""Parts that all admin pages share: read-only lists, columns, panels, and actions that ask for confirmation."""
