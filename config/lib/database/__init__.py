"""Tools for the whole database: the replica and its lag, time limits, and partitions by time."""
