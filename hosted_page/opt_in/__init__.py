"""The merchant's marketing box: its words, ticks and links."""
