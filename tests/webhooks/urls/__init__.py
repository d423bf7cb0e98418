"""To which addresses a webhook may go."""
