"""Changes to an order or a share while a payer has a page open."""

from collections.abc import Callable

from checkout import cancellations, captures, mate_shares, refunds
from checkout.group import share_changes, share_claims
from checkout.models import PaymentRequest
from config.lib import clock
from payments import operator_stops
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer
from tests.hosted_page.interrupted.visits import Visit, refund
from tests.outside import dispute

OTHER = "07700 900777"
Change = Callable[[Visit], object]


def share_of(page: Visit) -> PaymentRequest:
    return PaymentRequest.objects.select_related("checkout").get(checkout=page.checkout, position=2)


def cancel(page: Visit) -> None:
    cancellations.cancel(page.checkout.merchant, page.checkout.pk, cause=CAUSE)


def expire(page: Visit) -> None:
    factories.make_late(page.checkout)


def suspend(page: Visit) -> None:
    operator_stops.suspend(page.checkout.merchant, reason="test")


def sign_in_elsewhere(page: Visit) -> None:
    Payer(page.checkout).sign_in(OTHER)


def pay_elsewhere(page: Visit) -> None:
    other = Payer(page.checkout)
    other.sign_in(OTHER)
    other.client.post(f"/pay/split?id={page.checkout.pk}", {"split": "all"})
    card = {"number": mates.AMYS, "expiry": "08 / 49", "code": "1234"}
    other.client.get(other.client.post(other.get("/card")["Location"], card)["Location"])


def capture(page: Visit) -> None:
    captures.capture(page.checkout.merchant, page.checkout.pk, cause=CAUSE)


def lapse(page: Visit) -> None:
    page.checkout.refresh_from_db()
    factories.make_late(page.checkout)


def cancel_share(page: Visit) -> None:
    mate_shares.cancel(share_of(page).pk)


def decline_share(page: Visit) -> None:
    share = share_of(page)
    PaymentRequest.objects.filter(pk=share.pk).update(claim_digest="", claimed_until=None)
    mate_shares.decline(share.pk)


def replace_link(page: Visit) -> None:
    decline_share(page)
    share_changes.ask_again(share_of(page).pk)


def expire_share(page: Visit) -> None:
    PaymentRequest.objects.filter(pk=share_of(page).pk).update(expires_at=clock.now())


def take_share(page: Visit) -> None:
    share = share_of(page)
    PaymentRequest.objects.filter(pk=share.pk).update(claimed_until=clock.now())
    share_claims.claim_share(share.pk, claim="0" * 32, name="Zoe", is_signed_in=True, admit=lambda *_: None)


def pay_share(page: Visit) -> None:
    share = share_of(page)
    PaymentRequest.objects.filter(pk=share.pk).update(claim_digest="", claimed_until=None)
    other = Mate(share)
    other.sign_in(OTHER)
    other.give_card(mates.AMYS)
    mates.settled(share)


def dispute_order(page: Visit) -> None:
    page.checkout.refresh_from_db()
    dispute(page.checkout.payment, 1000)


def begin_refund(page: Visit) -> None:
    refunds.accept(page.checkout.merchant, page.checkout.pk, ref="r-1", cause=CAUSE)


def free_share(page: Visit) -> None:
    PaymentRequest.objects.filter(pk=share_of(page).pk).update(claimed_until=clock.now())


OF_SHARE: dict[str, Change] = {
    "cancelled": cancel_share,
    "declined": decline_share,
    "replaced": replace_link,
    "expired": expire_share,
    "freed": free_share,
    "taken": take_share,
    "paid": pay_share,
    "disputed": dispute_order,
    "refunding": begin_refund,
    "refunded": refund,
    "suspended": suspend,
}
OF_ORDER: dict[str, Change] = {
    "cancelled": cancel,
    "expired": expire,
    "suspended": suspend,
    "signed in elsewhere": sign_in_elsewhere,
    "paid elsewhere": pay_elsewhere,
    "captured": capture,
    "released": cancel,
    "lapsed": lapse,
    "refunding": begin_refund,
    "refunded": refund,
}
CHANGES = {"order": OF_ORDER, "share": OF_SHARE, "group": OF_SHARE}
