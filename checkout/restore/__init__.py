"""After a restore: writing again what the provider has moved and the database has lost."""
