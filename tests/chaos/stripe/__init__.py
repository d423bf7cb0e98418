"""Chaos tests with a simulated Stripe as the provider: settings of the processes, payers, and faults."""
