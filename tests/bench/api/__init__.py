"""`make bench`: what the API costs, against the budgets of DESIGN.md 11. A program, not a test: it takes minutes
and judges by the CPU's time, so nothing else should run beside it."""
