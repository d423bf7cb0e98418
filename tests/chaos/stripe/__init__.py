"""The chaos tests with the double of Stripe as the provider: its processes' settings, its payers, its faults."""
