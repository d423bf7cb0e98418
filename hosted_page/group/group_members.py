"""Builds the bill as the group may see it: which shares are paid, claimed or free (rule group.privacy)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import mate_shares
from checkout.group import share_claims
from checkout.models import Checkout, PaymentRequest
from checkout.states import SHARE_PAID, ShareStatus
from hosted_page import share_bar, share_items, summary
from hosted_page.payment_target import lead_name
from payments import money

LEAD, PAID, PLEDGED, TAKEN, SENT, FREE = "lead", "paid", "pledged", "taken", "sent", "free"
# The smallest width, in per cent of the bar, that has room for a letter.
ROOM = 6
# The mates' colours have the numbers 2 to 6. After the fifth mate, they start again with 2.
MATES_TINTS = 5


@dataclass(frozen=True)
class Person:
    """One person's part of the bill.

    - `left`, `width`: position and width of the person's part of the bar, in per cent
    - `is_named`: the lead gave the share a name, or this browser did when it took the share
    - `items`: a text with the units of the share, or "" if the cost is not split by item
    - `is_units`: the share consists of free units, of which mates can take some
    - `was_paid`: the share was paid at some time, even if it was refunded later. Its payer has a receipt.
    """

    position: int
    name: str
    initial: str
    amount: str
    state: str
    tint: int
    left: str = "0"
    width: str = "0"
    is_named: bool = False
    is_mine: bool = False
    was_paid: bool = False
    until: str = ""
    items: str = ""
    is_units: bool = False

    @property
    def icon(self) -> str:
        """Icon of a share that is paid, pledged or taken."""
        return {PAID: "check", PLEDGED: "card"}.get(self.state, "ring")

    @property
    def has_room(self) -> bool:
        """Whether the person's part of the bar has room for a letter."""
        return float(self.width) >= ROOM

    @property
    def called(self) -> str:
        """Name of the share as the group sees it: the person's name, or the number of the share on the bill."""
        is_nameless = self.state == FREE and not self.is_named
        return _("Share {number}").format(number=self.position) if is_nameless else self.name

    @property
    def of_whom(self) -> str:
        """Name of the share for use in a sentence, such as "Zoe’s share" or "Share 6"."""
        whose = _("{name}’s share").format(name=self.name) if self.is_named else ""
        return whose or _("Share {number}").format(number=self.position)


@dataclass(frozen=True)
class GroupBill:
    """The whole bill, with one entry per person, the lead first.

    `each` is the amount of each share, or "" if the amounts differ.
    """

    people: list[Person]
    each: str

    def of(self, state: str) -> list[Person]:
        """Return the mates in this state, without the lead."""
        return [person for person in self.people[1:] if person.state == state]

    def at(self, position: int) -> Person | None:
        """Return the mate at this position, or None if there is no such mate."""
        return next((person for person in self.people[1:] if person.position == position), None)

    @property
    def mine(self) -> Person | None:
        """Share that this browser has claimed, or None if it has not claimed one."""
        return next((person for person in self.people if person.is_mine), None)


def bill_for_claim(
    checkout: Checkout, shares: Sequence[PaymentRequest], claim: str, now: datetime
) -> GroupBill:
    """Return the bill for one browser. `claim` is the digest that identifies the browser's claims, or ""."""
    amounts = [share.amount for share in shares]
    own, name = checkout.amount - sum(amounts), lead_name(checkout)
    amount = money.display_for_payer(own, checkout.currency)
    is_equal = set(amounts) == {mate_shares.equal_share(checkout, len(amounts) + 1)}
    people = [
        Person(1, name, name[:1].upper(), amount, LEAD, 1),
        *(_person_of_share(share, checkout, claim, now, is_equal=is_equal) for share in shares),
    ]
    placed_people = zip(people, share_bar.places([own, *amounts]), strict=True)
    people = [replace(person, left=f"{x:.3f}", width=f"{width:.3f}") for person, (x, width) in placed_people]
    are_alike = len(set(amounts)) == 1 and not any(share.units for share in shares)
    return GroupBill(people, money.display_for_payer(amounts[0], checkout.currency) if are_alike else "")


def _person_of_share(
    share: PaymentRequest, checkout: Checkout, claim: str, now: datetime, *, is_equal: bool
) -> Person:
    state = _visible_state(share, now)
    is_leads = state == LEAD
    name = lead_name(checkout) if is_leads else share.shown_name if state != FREE else share.name
    is_mine = state == TAKEN and claim == share.claim_digest != ""
    return Person(
        position=share.position,
        name=name or share_name(share, checkout if is_equal and state == FREE else None),
        initial=name[:1].upper() or _number_mark(share),
        amount=money.display_for_payer(share.amount, checkout.currency),
        state=state,
        tint=1 if is_leads else colour_number(share),
        is_named=bool(share.shown_name if is_mine else share.name),
        is_mine=is_mine,
        was_paid=share.status in (*SHARE_PAID, ShareStatus.REFUNDED),
        until=claim_end(share, checkout) if is_mine else "",
        items=share_items.in_words(checkout, share.units),
        is_units=share.has_free_units(now),
    )


def _visible_state(share: PaymentRequest, now: datetime) -> str:
    """Return the share's state for the group (rule group.privacy).

    A share that is not paid, open, pledged or being paid is shown as a part of the lead's. The group
    therefore does not see that a mate declined.
    """
    if share.status in SHARE_PAID:
        return PAID
    if share.status == ShareStatus.PLEDGED:
        return PLEDGED
    if share.status not in (ShareStatus.OPEN, ShareStatus.PAYING):
        return LEAD
    if share_claims.is_free(share, now):
        return FREE
    is_sent = share.status == ShareStatus.OPEN and not share.is_kept(now)
    return SENT if is_sent else TAKEN


def share_name(share: PaymentRequest, equal_order: Checkout | None = None) -> str:
    """Return the text to show for a share without a name: its number on the bill, or how many units are free.

    If `equal_order` is passed, the text instead says that the share is one of this order's equal shares.
    """
    if share.has_units_for_anyone:
        count = sum(share.units)
        return ngettext("{count} free", "{count} free", count).format(count=count)
    if equal_order is not None:
        return _("One of {count} equal shares").format(count=equal_order.people)
    return _("Share {number}").format(number=share.position)


def name_of(share: PaymentRequest) -> str:
    """Return the mate's name for the lead, or the share's number if the mate has no name."""
    return share.shown_name or share_name(share)


def share_mark(share: PaymentRequest) -> str:
    """Return the text in a share's circle: the first letter of its name, or else its number."""
    return share.shown_name[:1].upper() or _number_mark(share)


def _number_mark(share: PaymentRequest) -> str:
    """Return the number of the share's free units, or else its position."""
    units = sum(share.units) if share.has_units_for_anyone else 0
    return str(units or share.position)


def colour_number(share: PaymentRequest) -> int:
    """Return the number of a mate's colour, the same in every browser. Free units have the colour 0."""
    if share.has_units_for_anyone and not share.shown_name:
        return 0
    return (share.position - 2) % MATES_TINTS + 2


def look_of_person(checkout: Checkout, share: PaymentRequest) -> dict[str, Any]:
    """Return the fields that show the mate and the units of the share on a line."""
    return {
        "initial": share_mark(share),
        "items": share_items.in_words(checkout, share.units),
        "person": colour_number(share),
    }


def claim_end(share: PaymentRequest, checkout: Checkout) -> SafeString:
    """Return the time of day at which a claim on a share ends, as HTML.

    Return "" if the share is not open, for example because its card is being charged.
    """
    if share.status != ShareStatus.OPEN or share.claimed_until is None:
        return SafeString()
    return summary.short_time(share.claimed_until, summary.zone_of(checkout))
