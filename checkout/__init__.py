"""The order: states, capture, refund, mates' shares, operations in doubt, and the merchant API."""
