"""The lookup keys of a process, for the tests that replace them."""

from pytest_django.fixtures import Settings

OLD, NEW = "the-key-of-last-year-0123456789", "the-key-of-this-year-0123456789"
LEA, FINN, AMY = "+447700900123", "+447700900456", "+447700900457"
EMAIL, HOME = "lea@example.com", "192.0.2.7"


class Keys:
    """The lookup keys of this process. It writes digests with the first key, and looks rows up with all keys."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def are(self, *keys: str) -> None:
        self._settings.LOOKUP_KEY, self._settings.LOOKUP_KEY_FALLBACKS = keys[0], list(keys[1:])
