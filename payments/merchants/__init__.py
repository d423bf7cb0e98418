"""The admin pages of merchants and of operators' stops."""
