"""Mutants of the money modules: small changes on which their tests must fail (`make mutants`)."""
