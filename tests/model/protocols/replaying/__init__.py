"""Replays the steps of a model with the real code and the real database."""
