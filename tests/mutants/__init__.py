"""Mutants of the money and protocol modules: small changes that must make tests fail (`make mutants`)."""
