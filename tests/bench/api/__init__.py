"""`make bench`: what the API costs, against its budgets (docs/scale.md). A program, not a test: it takes minutes
and judges by the CPU's time, so nothing else should run beside it."""
