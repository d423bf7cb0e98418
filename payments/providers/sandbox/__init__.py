"""The sandbox bank: a complete provider with books, cards and pages of its own."""
