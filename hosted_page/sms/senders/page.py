"""The sender in `local` and `sandbox`, which sends no messages."""


class PageSender:
    """Sender that sends no messages. In `local` and `sandbox`, the page shows the code."""

    shows_codes = True

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Return at once, because the page shows the code."""

    def check_access(self) -> None:
        """Return at once, because there is no carrier."""
