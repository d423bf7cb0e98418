"""The queue as its users see it: its rows, its log, and the processes that share it."""
