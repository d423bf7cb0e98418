"""Orders: their states, captures, refunds, mates' shares and operations in doubt, and the merchant API."""
