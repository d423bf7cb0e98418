"""The path prefixes of the API and of the payers' pages."""

from config.lib.web import bodies

API_PREFIXES = ("/api/merchant/", "/api/sandbox/", *bodies.OAUTH)
PAYER_PREFIXES = ("/pay", "/bank/card/", "/bank/challenge/")
