"""A simple browser over HTTP, for a payer on the hosted page or at a pay link, or for a user of the portal."""

import html
import re
from urllib.parse import urljoin, urlsplit

import requests

from tests.journeys.merchant import PATIENCE
from tests.portal import people

# The port in a page's address. It is removed from the Referer header, because nginx forwards the host without
# a port.
_PORT = re.compile(r"(?<=localhost):\d+")


class Person:
    """A browser without JavaScript that opens pages and sends their forms."""

    def __init__(self, base_url: str, ca: str = "") -> None:
        self._base = base_url
        self._http = requests.Session()
        self._http.trust_env, self._http.verify = False, ca or True
        self.page = requests.Response()

    def open(self, address: str) -> str:
        """Open an address and return the text of the page, even if it is an error page."""
        self.page = self._http.get(urljoin(self._base, address), timeout=PATIENCE)
        return self.page.text

    def send(self, action: str, **fields: str | list[str]) -> str:
        """Send the form on the page whose address ends with `action`. Return the text of the next page."""
        found = re.findall(r'<form(?:(?! action=)[^>])*(?: action="([^"]*)")?', self.page.text)
        # A form without an action is sent to the address of its page.
        targets = [urljoin(self.page.url, html.unescape(target)) for target in found]
        target = next(one for one in targets if urlsplit(one).path.endswith(action))
        (token, *_) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page.text)
        self.page = self._http.post(
            target,
            data={"csrfmiddlewaretoken": token, **fields},
            headers={"Referer": _PORT.sub("", self.page.url)},
            timeout=PATIENCE,
        )
        return self.page.text

    def sign_in(self, phone: str) -> str:
        """Enter a phone number, and then the code that the page shows. Return the code."""
        shown = re.search(r"<code>(\d{3}) ?(\d{3})</code>", self.send("/phone", phone=phone))
        assert shown is not None, self.page.text
        self.send("/code", code="".join(shown.groups()))
        return "".join(shown.groups())

    def give_card(self, number: str) -> str:
        """Enter a card on the bank's card page, which must be the current page."""
        own = urlsplit(self.page.url).path
        return self.send(own, number=number, expiry="08 / 49", code="123", name="Lea")

    def log_in(self, email: str, password: str) -> None:
        """Log in to the portal."""
        self.open("/accounts/login/")
        self.send("/login/", login=email, password=password)

    def set_up_app(self) -> None:
        """Set up an authenticator app, which is required outside `local`."""
        self.open("/portal")
        (secret,) = re.findall(r'id="setup-key">([A-Z2-7]+)<', self.page.text)
        self.send("/activate/", code=people.code(secret))

    def refund(self, checkout_uuid: str) -> None:
        """Refund an order in the portal, and confirm the refund."""
        self.open(f"/portal/checkouts/{checkout_uuid}/refund")
        self.send("/refund", step="check", reason="Rained off")
        (ref,) = re.findall(r'name="ref" value="(portal_[0-9a-f-]+)"', self.page.text)
        self.send("/refund", step="refund", reason="Rained off", ref=ref)
