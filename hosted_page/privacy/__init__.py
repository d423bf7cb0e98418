"""Personal data: the rows about a person, their export, their erasure, and their retention."""
