"""The database as a whole: the replica and its lag, time limits, partitions by time."""
