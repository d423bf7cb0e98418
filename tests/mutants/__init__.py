"""Mutants of the modules of money and of protocols: small changes on which their tests must fail (`make mutants`)."""
