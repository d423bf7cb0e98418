"""What an order makes of what others did at the provider: disputes, refunds that came back."""
