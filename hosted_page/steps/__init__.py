"""The steps to a payment: phone number, code, split, card."""
