"""What acts of others at the provider do to an order: disputes, refunds that came back."""
