"""Tests of the ledger's sums for closed days."""
