"""The beginnings of the addresses that programs and payers use."""

from config.lib.web import bodies

CALLS = ("/api/merchant/", "/api/sandbox/", *bodies.OAUTH)
PAYERS = ("/pay", "/bank/card/", "/bank/challenge/")
