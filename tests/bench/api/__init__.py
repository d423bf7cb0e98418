"""The benchmark `make bench`: the CPU time of API requests, compared with their budgets (docs/scale.md).

This is a program and not a test, because it takes minutes. Do not run other programs at the same time.
"""
