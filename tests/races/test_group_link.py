"""If a hundred people on the same network open a group link at once, each share is claimed by one person."""

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.journeys.merchant import Merchant
from tests.journeys.service import Service
from tests.journeys.watched.person import Person

pytestmark = [pytest.mark.journey, pytest.mark.long]
CROWD, SHARES = 100, 19
FREE = re.compile(r'name="share" value="(\d+)"')


class Guest(Person):
    """A person with a separate browser. All guests are on the same network."""

    def __init__(self, service: Service) -> None:
        super().__init__(service.base_url, service.ca)
        self.statuses: list[int] = []
        self.told = ""  # the last page with the message that a share was already taken

    def claim_share(self, link: str, wanted: int, start: Barrier) -> str:
        """Open the link, and take the wanted share at the same moment as all other guests.

        If that share is already taken, take another free share. Return the URL of the last page.
        """
        self.open(link)
        self.statuses.append(self.page.status_code)
        left = [str(wanted)]
        start.wait(60)
        while left:
            page = self.take(left[0])
            self.statuses += [answer.status_code for answer in (*self.page.history, self.page)]
            if self.page.status_code != 409:
                break
            self.told, left = page, FREE.findall(page)
        return self.page.url

    def take(self, share: str) -> str:
        """Take a share. If the response is 503 because the machine is busy, try again."""
        open_page = self.page
        while (page := self.send("/take", share=share)) and self.page.status_code == 503:
            time.sleep(int(self.page.headers["Retry-After"]))
            self.page = open_page
        return page


@pytest.fixture
def link(service: Service, merchant: Merchant) -> str:
    """Return the group link of a captured order of £90.00, in which nineteen mates are asked for £4.00 each."""
    lea, checkout = Person(service.base_url, service.ca), merchant.create()
    lea.open(f"/pay?id={checkout}")
    lea.sign_in("07700 900123")
    names = [f"Mate {number}" for number in range(SHARES)]
    lea.send("/split", split="own", your_name="Lea", name=names, amount=["4"] * SHARES)
    lea.give_card("4242424242424242")
    merchant.capture(checkout)
    (found,) = set(re.findall(r'data-url="([^"]+/pay/g/[^"]+)"', lea.open(f"/pay?id={checkout}")))
    return str(found)


@pytest.mark.rule("group.taken", "group.takes")
def test_a_hundred_browsers_in_one_network_claim_each_share_once(service: Service, link: str) -> None:
    """A person who is too late sees a message and the shares that are still free.

    The failed attempt does not count towards the network's hourly limit.
    """
    guests, start = [Guest(service) for _ in range(CROWD)], Barrier(CROWD)
    wanted = [2 + number % SHARES for number in range(CROWD)]
    with ThreadPoolExecutor(CROWD) as pool:
        came = list(pool.map(lambda guest, share: guest.claim_share(link, share, start), guests, wanted))
    statuses = {status for guest in guests for status in guest.statuses}
    assert statuses == {200, 303, 409}, "nothing broke, and nobody was shut out"
    assert Counter(came) == {
        **{f"{link}/{position}": 1 for position in range(2, SHARES + 2)},
        f"{link}/take": CROWD - SHARES,
    }
    for guest, address in zip(guests, came, strict=True):
        if not address.endswith("/take"):
            assert "Kept for you until" in guest.open(address)
            continue
        for words in ("was just taken", "free again after a few minutes"):
            assert words in guest.told
