"""The order: its states, its capture and refund, the mates' shares, and the merchant API."""
