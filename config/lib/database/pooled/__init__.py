"""Django's engine for PostgreSQL, which tests a pooled connection only if it might be dead."""
