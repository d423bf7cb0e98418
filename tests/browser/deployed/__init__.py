"""The deployed service behind TLS with public host names, and tests that use it in a browser."""
