"""The database as a whole: a replica and how far it is behind, what a silent one may cost, partitions by time."""
