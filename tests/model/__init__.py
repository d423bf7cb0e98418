"""Explicit-state models of protocols and of money: `make models` checks them and prints their counterexamples."""
