"""The sandbox bank: a complete provider with its own payment records, cards and pages."""
