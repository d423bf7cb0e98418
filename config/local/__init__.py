"""The whole service on one machine, for `make run` and the tests."""


class CannotStart(Exception):
    """Raised if the local run cannot start or continue. The message is one line for a person."""
