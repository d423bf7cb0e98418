"""The operators' page about the whole: what is in doubt, what is late, and the pumps."""
