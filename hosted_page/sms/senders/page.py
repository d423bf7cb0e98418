"""The sender of local and sandbox."""


class PageSender:
    """Sends nothing: in local and sandbox the page itself shows the code."""

    shows_codes = True

    def send(self, phone: str, text: str, *, key: str) -> None:
        """Do nothing: the page shows the code."""
