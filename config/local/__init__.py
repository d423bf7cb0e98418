"""The whole service on one machine, for `make run` and the tests."""


class CannotStart(Exception):
    """One line for a person: why the local run cannot start, or cannot go on."""
