"""Simulates the buyers in a sale, on one event loop. Like a browser, each buyer has cookies and an IP address."""

import asyncio
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import aiohttp

from tests import factories

THINK = 0.3  # a buyer waits this many seconds between a page and the next step
POLL = 1.5  # seconds between two checks of the status
PATIENCE = 100.0  # after this many seconds, a buyer gives up
SPLIT_EVERY = 5  # every fifth buyer splits the order with two mates
DONE = {"confirmed", "released", "expired", "declined", "cancelled"}
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_CODE = re.compile(r"<code>(\d{6})</code>")
# The Referer has no port, because the proxy forwards the host without a port. In production, the port is 443.
_FROM_US = {"Referer": "https://localhost/"}
_STATE = re.compile(r'data-state="(\w+)"')


class Refused(Exception):
    """Raised if a buyer gets a response that a buyer should never get."""


@dataclass
class Bought:
    """The results of one buyer: how long each request took, and which states the page has shown."""

    number: int
    checkout: str = ""
    requests: list[tuple[str, float]] = field(default_factory=list)  # the step, and the seconds
    states: list[str] = field(default_factory=list)
    refusal: str = ""


@dataclass(frozen=True)
class Sale:
    """The data that buyers need: the service's URL and certificate, the shop's token, and the first buyer's number."""

    base_url: str
    certificate: str
    token: str
    first: int = 0


async def arrive(sale: Sale, count: int, within: float) -> Sequence[Bought]:
    """Start `count` buyers, spread evenly over `within` seconds. Return their results when all are done."""
    trust = ssl.create_default_context(cafile=sale.certificate)
    began = time.monotonic()

    async def run_buyer(number: int) -> Bought:
        await asyncio.sleep(max(0.0, began + within * number / count - time.monotonic()))
        return await _Buyer(sale, sale.first + number, trust).buy()

    return await asyncio.gather(*(run_buyer(number) for number in range(count)))


class _Buyer:
    def __init__(self, sale: Sale, number: int, trust: ssl.SSLContext) -> None:
        self._sale, self._number, self._bought = sale, number, Bought(number)
        own = f"127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}"
        connector = aiohttp.TCPConnector(local_addr=(own, 0), ssl=trust, limit=2)
        jar = aiohttp.CookieJar(unsafe=True)
        patience = aiohttp.ClientTimeout(total=30)
        self._http = aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=patience)
        self._hidden = ""

    async def buy(self) -> Bought:
        async with self._http:
            try:
                await self._buy()
            except (Refused, aiohttp.ClientError, TimeoutError) as refusal:
                self._bought.refusal = f"{type(refusal).__name__}: {refusal}"
        return self._bought

    async def _buy(self) -> None:
        page = f"{self._sale.base_url}/pay?id={await self._order()}"
        await self._get("phone", page)
        await self._post(
            "POST phone", self._step("phone"), phone=f"+447{4000 + self._number}{self._number:05}"
        )
        shown = await self._get("code", page)
        await self._post("POST code", self._step("code"), code=_CODE.findall(shown)[0])
        await self._get("split", self._step("split"))
        await self._post("POST split", self._step("split"), **self._split())
        bank = await self._led("to the bank", self._step("card"))
        await self._get("bank", bank)
        card = {"number": "4242424242424242", "expiry": "08 / 49", "code": "123", "name": "Lea"}
        back = await self._post("bank POST", bank, **card)
        await self._led("paid", back)
        await self._see(page)

    def _split(self) -> dict[str, str]:
        if self._number % SPLIT_EVERY:
            return {"split": "all"}
        return {"split": "equal", "people": "3", "your_name": "Lea"}

    async def _order(self) -> str:
        order = factories.order(merchant_order_id=f"S-{self._number}")
        headers = {"Authorization": f"Bearer {self._sale.token}"}
        url = f"{self._sale.base_url}/api/merchant/v1/checkouts"
        answer, _ = await self._ask("create", "POST", url, json=order, headers=headers)
        async with answer:
            self._bought.checkout = str((await answer.json())["data"]["checkout_uuid"])
        return self._bought.checkout

    def _step(self, name: str) -> str:
        return f"{self._sale.base_url}/pay/{name}?id={self._bought.checkout}"

    async def _see(self, page: str) -> None:
        """Load the page again and again until it shows a final state."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = _STATE.findall(await self._get("status", page))
            self._bought.states.append(found[0] if found else "payable")
            if self._bought.states[-1] in DONE:
                return
            await asyncio.sleep(POLL)
        raise Refused(f"waited in vain: {self._bought.states[-3:]}")

    async def _get(self, step: str, url: str) -> str:
        answer, text = await self._ask(step, "GET", url)
        if answer.status != 200:
            raise Refused(f"{step}: {answer.status}")
        if found := _TOKEN.search(text):
            self._hidden = found[1]
        await asyncio.sleep(THINK)
        return text

    async def _led(self, step: str, url: str) -> str:
        answer, _ = await self._ask(step, "GET", url)
        return self._place(step, url, answer)

    async def _post(self, step: str, url: str, **fields: str) -> str:
        sent = fields | {"csrfmiddlewaretoken": self._hidden}
        answer, _ = await self._ask(step, "POST", url, data=sent, headers=_FROM_US)
        return self._place(step, url, answer)

    @staticmethod
    def _place(step: str, url: str, answer: aiohttp.ClientResponse) -> str:
        if answer.status not in (302, 303):
            raise Refused(f"{step}: {answer.status}")
        return urljoin(url, answer.headers["Location"])

    async def _ask(
        self, step: str, method: str, url: str, *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> tuple[aiohttp.ClientResponse, str]:
        began = time.monotonic()
        async with self._http.request(method, url, allow_redirects=False, headers=headers, **body) as answer:
            text = await answer.text()
        self._bought.requests.append((step, time.monotonic() - began))
        if answer.status >= 400:
            raise Refused(f"{step}: {answer.status} {text[:200]}")
        return answer, text
