"""The order: states, capture and refund, mates' shares, operations in doubt until they end, and the merchant API."""
