"""The benchmark `make bench`: the CPU time of the API's requests, compared with their budgets (docs/scale.md).

This is a program and not a test: it takes minutes. Run nothing else at the same time.
"""
