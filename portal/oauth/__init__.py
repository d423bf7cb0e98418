"""OAuth for merchants' backends: the token endpoint, the revocation endpoint, and their metadata."""
