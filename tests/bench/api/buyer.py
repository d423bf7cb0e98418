"""A buyer's browser on the hosted page, in this process. It handles cookies, hidden form tokens and redirects."""

import re
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from tests.bench.api.app import Answer, Call

_TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')
_FORM = "application/x-www-form-urlencoded"
_CODE = re.compile(rb"<code>(\d{6})</code>")


class Buyer:
    """A buyer who pays a whole order with one card. Each step makes one request."""

    def __init__(self, checkout_uuid: str | UUID, phone: str) -> None:
        self._id, self._phone = str(checkout_uuid), phone
        self._cookies: dict[str, str] = {}
        self._hidden = b""
        self._next = self._bank = self._code = ""

    def page(self) -> None:
        """Open the page that the order shows in its current state."""
        answer = self._get(f"/pay?id={self._id}")
        if found := _CODE.search(answer.body):
            self._code = found[1].decode()

    def phone(self) -> None:
        self._post("phone", phone=self._phone)

    def enter_code(self) -> None:
        self._post("code", code=self._code)

    def split_page(self) -> None:
        self._get(f"/pay/split?id={self._id}")

    def split(self) -> None:
        self._post("split", split="all")

    def card(self) -> None:
        """Request the card page, which redirects to the bank."""
        self._get(f"/pay/card?id={self._id}", status=302)

    def bank_page(self) -> None:
        self._bank = self._next
        self._get(self._bank)

    def bank_card(self) -> None:
        fields = {"number": "4242424242424242", "expiry": "08 / 49", "code": "123", "name": "Lea"}
        self._send(self._bank, fields)

    def paid(self) -> None:
        """Follow the bank's redirect back to the hosted page. This request authorizes the order."""
        self._get(self._next, status=303)

    def _get(self, path: str, status: int = 200) -> Answer:
        answer = self._made(Call("GET", path, status, cookie=self._cookie()))
        if found := _TOKEN.search(answer.body):
            self._hidden = found[1]
        return answer

    def _post(self, step: str, **fields: str) -> None:
        self._send(f"/pay/{step}?id={self._id}", fields)

    def _send(self, path: str, fields: dict[str, str]) -> None:
        body = urlencode(fields | {"csrfmiddlewaretoken": self._hidden.decode()}).encode()
        self._made(Call("POST", path, 303, body, cookie=self._cookie(), content_type=_FORM))

    def _made(self, call: Call) -> Answer:
        answer = call.send()
        for name, text in answer.headers:
            if name == "Set-Cookie":
                self._cookies.update((key, morsel.value) for key, morsel in SimpleCookie(text).items())
            if name == "Location":
                to = urlsplit(text)
                self._next = f"{to.path}?{to.query}" if to.query else to.path
        return answer

    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())
