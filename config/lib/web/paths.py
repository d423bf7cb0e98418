"""The path prefixes of the API and of the payers' pages."""

from config.lib.web import bodies

CALLS = ("/api/merchant/", "/api/sandbox/", *bodies.OAUTH)
PAYERS = ("/pay", "/bank/card/", "/bank/challenge/")
