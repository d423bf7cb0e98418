"""Django's engine for PostgreSQL, whose pooled connections are asked whether they live only when that is in doubt."""
