"""The people who visit an order's pages: the lead, the mates of a split order, and people who have only a link."""

from dataclasses import dataclass
from typing import Any

from django.test import Client

from checkout import captures, mate_shares
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from hosted_page.models import SmsMessage
from hosted_page.status.cells import Viewer
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer
from tests.hosted_page.group.test_group_page import Guest

V = Viewer
SPLIT: dict[str, Any] = {
    "split": "own",
    "name": ["Finn", "Amy", "Bob", "Cat", "Dan"],
    "amount": ["20", "10", "10", "10", "10"],
    "your_name": "Lea",
}
# For each viewer, the position of the share on the viewer's page.
POSITIONS = {V.PAID: 2, V.PAY_LINK: 2, V.HOLDER: 3, V.REFUSED: 4, V.FORMER: 5, V.LATE: 6}
VIEWERS_OF_SHARES = (V.HOLDER, V.REFUSED, V.FORMER, V.LATE, V.GROUP_LINK)


@dataclass(frozen=True)
class View:
    """A viewer's browser, the address of the page in it, and the order that the page shows."""

    client: Client
    path: str
    order: Checkout

    def read(self, language: str) -> Any:
        """Return the page in this language, after all redirects."""
        return self.client.get(self.path, follow=True, headers={"accept-language": language})


def at_order(payer: Payer) -> View:
    return View(payer.client, f"/pay?id={payer.checkout.pk}", payer.checkout)


def at_share(mate: Mate) -> View:
    return View(mate.client, mate.path, mate.share.checkout)


class Party:
    """A split order of £90.00. Lea leads it, and asks Finn for £20.00 and four other mates for £10.00 each."""

    def __init__(self, order: Checkout) -> None:
        self.order, self.lead = order, Payer(order)

    def split(self) -> None:
        """Sign Lea in and save the split. She enters no card."""
        self.lead.sign_in()
        self.lead.post("/split", **SPLIT)

    def collect(self) -> None:
        """Let Lea sign in and ask the mates to pledge before she pays.

        Bob then declines, and Lea cancels Cat's share.
        """
        self.lead.sign_in()
        self.lead.post("/split", **SPLIT, when="first")
        mate_shares.decline(self.share(4).pk)
        mate_shares.cancel(self.share(5).pk)

    def hold(self) -> None:
        """Let the mates pledge, and hold the amount on Lea's card."""
        self.collect()
        self.pay_by_card()

    def pay_by_card(self) -> None:
        """Hold the amount on Lea's card."""
        card = {"number": "4242424242424242", "expiry": "08 / 49", "code": "123"}
        back = self.lead.client.post(self.lead.get("/card")["Location"], card)
        self.lead.client.get(back["Location"])
        self.order.refresh_from_db()

    def capture(self, **split: Any) -> None:
        """Split the order, hold the amount, and capture it for the merchant. `split` replaces values of SPLIT."""
        self.lead.pay(**SPLIT | split)
        self.order = captures.capture(self.order.merchant, self.order.pk, cause=CAUSE)
        self.finn = Mate(self.share(2))

    def end_shares(self) -> None:
        """Let Bob decline his share, let Lea cancel Cat's, and let Dan's link expire."""
        mate_shares.decline(self.share(4).pk)
        mate_shares.cancel(self.share(5).pk)
        PaymentRequest.objects.filter(pk=self.share(6).pk).update(expires_at=clock.now())
        mate_shares.expire(self.share(6).pk)

    def reimburse(self) -> None:
        """Let Finn pay his share, and reimburse it to Lea's card."""
        self.finn.pay()
        assert mates.settled(self.finn.share) == "reimbursed"

    def share(self, position: int) -> PaymentRequest:
        return self.order.payment_requests.get(position=position)

    def view(self, viewer: Viewer) -> View:
        """Return the page that this viewer sees."""
        match viewer:
            case V.LEAD:
                return at_order(self.lead)
            case V.ORDER_LINK:
                return at_order(Payer(self.order))
            case V.GROUP_LINK:
                guest = Guest(self.order)
                return View(guest.client, guest.path, self.order)
            case V.PAID:
                return at_share(self.finn)
        return at_share(Mate(self.share(POSITIONS[viewer])))

    def views(self, *viewers: Viewer) -> dict[Viewer, View]:
        return {viewer: self.view(viewer) for viewer in viewers}


def lead_without_mates(merchant_of: Checkout, card: str = "") -> Payer:
    """Return the browser of a lead who pays another order of the same merchant without mates.

    If `card` is given, the lead pays with it. Otherwise, the lead chooses to pay the whole order, but enters
    no card.
    """
    lead = Payer(factories.checkout(merchant_of.merchant))
    SmsMessage.objects.all().delete()  # otherwise the lead's number must wait for its next code
    if card:
        lead.pay(card)
    else:
        lead.sign_in()
        lead.post("/split", split="all")
    lead.checkout.refresh_from_db()
    return lead


def captured_without_mates(merchant_of: Checkout, card: str = "4242424242424242") -> Payer:
    """Return the browser of a lead without mates whose order is captured."""
    lead = lead_without_mates(merchant_of, card)
    lead.checkout = captures.capture(lead.checkout.merchant, lead.checkout.pk, cause=CAUSE)
    return lead
