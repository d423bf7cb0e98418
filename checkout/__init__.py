"""The order: its states, its money's way, the mates' shares, and the merchant API."""
