"""Phone numbers and prefilled customer data."""
