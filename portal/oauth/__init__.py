"""OAuth for merchants' backends: the endpoints for tokens and for their revocation, and the metadata about both."""
