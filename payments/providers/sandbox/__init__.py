"""The sandbox bank: a complete provider with its own books, cards and pages."""
