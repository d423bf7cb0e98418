"""The deployed service behind TLS with public host names, and tests that use the service in a browser."""
