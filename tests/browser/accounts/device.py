"""A browser's virtual authenticator, which stores its passkeys."""

from playwright.sync_api import Page

DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Device:
    """The virtual authenticator in the browser of a page."""

    def __init__(self, page: Page) -> None:
        self._tools = page.context.new_cdp_session(page)
        self._tools.send("WebAuthn.enable")
        self._id = self._tools.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})[
            "authenticatorId"
        ]

    def recognises(self, whether: bool) -> None:
        """Set whether the device recognises its user."""
        self._tools.send("WebAuthn.setUserVerified", {"authenticatorId": self._id, "isUserVerified": whether})

    def clear(self) -> None:
        """Delete all passkeys on the device."""
        self._tools.send("WebAuthn.clearCredentials", {"authenticatorId": self._id})
