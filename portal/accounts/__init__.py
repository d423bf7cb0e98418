"""Logging in and proving one's identity: passwords, second factors, passkeys, sessions, unused accounts."""
