"""The migrations, and the database that the tests copy."""
