"""The steps to a payment: a number, a code, a card."""
