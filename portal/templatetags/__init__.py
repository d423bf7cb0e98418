"""Template tags and filters of the portal and of the operators' pages."""
