"""The group at one order: who of them has taken which share."""
