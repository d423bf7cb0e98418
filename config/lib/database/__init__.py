"""Connections: a replica that may be read, how far it is behind, and what a silent one may cost."""
