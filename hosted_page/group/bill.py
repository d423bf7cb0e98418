"""The group's bill as its lead sees it: who bears what, person by person, and what it comes to (rule share.borne)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from checkout import reading, sharing
from checkout.models import Checkout, PaymentRequest
from checkout.reading import Borne
from checkout.states import SHARE_ASKED, SHARE_PAID, ShareStatus, Status
from hosted_page import share_bar, summary
from hosted_page.group import folds, given_back, last_day, lines, people
from hosted_page.group.folds import Fold
from hosted_page.group.given_back import GivenBack
from hosted_page.group.last_day import LastDay
from hosted_page.group.lines import Line, Wrong
from payments import disputes, money
from payments.models import Dispute

MANY = 9  # people from which on the bar has no letters
ROOM_FOR_YOU = 12  # per cent of the bar that the lead's word needs


@dataclass(frozen=True)
class Part:
    """A person's part of the bar, in per cent of its width."""

    line: Line
    x: str
    width: str
    letters: str
    icon: str


@dataclass(frozen=True)
class Bill:
    """What the page shows. `seen` names just this state of it; `said_no` waits for the lead's answer.

    `disputed` is the status of the dispute that stands on the order, "" if none does: nobody is asked then;
    `given_back` is what banks have given back for good, None while they have not.
    """

    bears: str
    note: str
    sentence: str
    parts: list[Part]
    sums: list[dict[str, str]]
    lines: list[Line]
    folds: list[Fold]
    total: str
    until: str
    seen: str
    said_no: Line | None
    last_day: LastDay | None
    disputed: str
    given_back: GivenBack | None
    shares: Sequence[PaymentRequest]

    @property
    def is_live(self) -> bool:
        """Whether anything may still happen by itself: a share is open, or owed to the lead, or a bank decides.

        Rule bill.live.
        """
        is_open = any(share.status in (*SHARE_ASKED, ShareStatus.PAID) for share in self.shares)
        return is_open or self.is_paused

    @property
    def is_paused(self) -> bool:
        """Whether a bank looks into a card of the order: the links, and what mates have paid, wait until it decides."""
        return self.disputed == Dispute.Status.OPEN

    @property
    def is_given_back(self) -> bool:
        """Whether a bank has given back what a card of the order paid."""
        return self.given_back is not None

    @property
    def own_back(self) -> str:
        """How much the lead's own bank has given back, "" for nothing: what each person bears is not known then."""
        return self.given_back.own if self.given_back else ""

    @property
    def is_owed(self) -> bool:
        """Whether a mate has paid what is not back on the lead's card."""
        return any(share.status == ShareStatus.PAID for share in self.shares)

    @property
    def heading(self) -> str:
        """The page's title: what the lead has got back from their bank, else what they bear."""
        if self.own_back:
            return _("Your bank gave you {amount} back").format(amount=self.own_back)
        words = _("You bear {amount}") if self.is_given_back else _("You bear {amount} now")
        if self.is_settled:
            words = _("You bear {amount}, your own share")
        return words.format(amount=self.bears)

    @property
    def is_asking(self) -> bool:
        """Whether mates are still asked for something."""
        return any(share.status in SHARE_ASKED for share in self.shares)

    @property
    def is_settled(self) -> bool:
        """Whether all have paid."""
        return all(share.status in SHARE_PAID for share in self.shares)

    @property
    def has_begun(self) -> bool:
        """Whether the shares are open or have been, which the capture of the order makes them."""
        return any(line.status not in ("", ShareStatus.DRAFT) for line in self.lines)

    @property
    def badge(self) -> str:
        """Where the order stands."""
        return _("All have paid") if self.is_settled else _("Confirmed and paid")

    @property
    def is_large(self) -> bool:
        """Whether the bar has too many parts for letters."""
        return len(self.lines) >= MANY


def of(checkout: Checkout, *, wrong: Wrong | None = None, known_no: str | None = None) -> Bill | None:
    """Return the bill of a split order, read `with_read_at`; None of another. `wrong` is shown beside its share.

    Shares whose time has passed end first (rule share.ends).
    `known_no` is given for a page that is open: the id of the share whose no it shows, or "". Of any other no the line
    under its badge tells, since nothing on the page may move.
    """
    now = reading.read_at(checkout)
    if not (shares := _shares(checkout, now)):
        return None
    borne, (disputed, back) = reading.borne(checkout, shares), _dispute(checkout, shares)
    all_lines = lines.of(checkout, shares, now, wrong, disputed=disputed, is_own_back=bool(back and back.own))
    noes = [line for line in all_lines if line.status == ShareStatus.DECLINED]
    said_no = noes[0] if noes and known_no is None and not disputed else None
    return Bill(
        bears=money.for_payer(borne.bears, checkout.currency),
        note="" if disputed else _note(checkout, noes, known_no),
        sentence="" if said_no or known_no else _sentence(checkout, all_lines, borne, disputed, back),
        parts=_parts(checkout, shares, all_lines),
        sums=_sums(borne, checkout.currency),
        lines=all_lines,
        folds=folds.of(checkout, shares, all_lines) if len(all_lines) >= MANY else [],
        total=money.for_payer(checkout.amount, checkout.currency),
        until="" if disputed else _until(checkout, shares),
        seen=seen(checkout, shares, now, disputed),
        said_no=said_no,
        last_day=None if disputed else last_day.of(checkout, shares, all_lines, now),
        disputed=disputed,
        given_back=back,
        shares=shares,
    )


def _shares(checkout: Checkout, now: datetime) -> list[PaymentRequest]:
    shares = reading.shares(checkout)
    return reading.shares(checkout) if sharing.end_all_late(checkout, shares, now) else shares


def _dispute(checkout: Checkout, shares: Sequence[PaymentRequest]) -> tuple[str, GivenBack | None]:
    """Return the status of the dispute that stands on a paid order, "" if none does, and what was given back."""
    found = disputes.standing_of(checkout) if checkout.status == Status.CAPTURED else None
    is_lost = found is not None and found.status == Dispute.Status.LOST
    back = given_back.of(checkout, shares, found) if found and is_lost else None
    return found.status if found else "", back


def seen(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime, disputed: str) -> str:
    """Return a digest of all that may change on the bill: it is other than before if anything has."""
    facts: list[Any] = [checkout.updated_at, disputed, sorted(lines.waiting(checkout, shares, now))]
    for share in shares:
        facts += (share.status, share.token_digest, share.expires_at, share.next_reminder_at)
        facts += (share.shown_name, share.claimed_until if share.is_kept(now) else None)
    return hashlib.blake2b(repr(facts).encode(), digest_size=12).hexdigest()


def _until(checkout: Checkout, shares: Sequence[PaymentRequest]) -> str:
    """Return when the last link ends, "" if none is open."""
    return summary.day(last_day.ends_at(shares), checkout)


def _note(checkout: Checkout, noes: Sequence[Line], known_no: str | None) -> str:
    fresh = [line for line in noes if line.id != known_no]
    if known_no is not None and fresh:
        return _("{name} said no.").format(name=fresh[-1].name)
    whole = money.for_payer(checkout.amount, checkout.currency)
    return _("{shop} has the whole {amount}.").format(shop=checkout.merchant.name, amount=whole)


def _on_dispute(checkout: Checkout, all_lines: Sequence[Line], disputed: str) -> str:
    """Return what a bank looks into, "" if none does; where mates paid too, not whose (rule share.pauses)."""
    if disputed == Dispute.Status.OPEN and not any(line.status in SHARE_PAID for line in all_lines):
        amount = money.for_payer(checkout.amount, checkout.currency)
        return _("Your bank is looking into your {amount}. You need not do anything.").format(amount=amount)
    if disputed == Dispute.Status.OPEN:
        return _("A bank is looking into a payment for this order. You need not do anything.")
    return ""


def _sentence(
    checkout: Checkout,
    all_lines: Sequence[Line],
    borne: Borne,
    disputed: str,
    back: GivenBack | None,
) -> str:
    """Return what is said of the mates' money: what banks gave back or look into, else its way."""
    if back:
        return back.words
    return _on_dispute(checkout, all_lines, disputed) or _where_it_goes(checkout, all_lines, borne)


def _where_it_goes(checkout: Checkout, all_lines: Sequence[Line], borne: Borne) -> str:
    """Return one sentence on the way of the mates' money."""
    card = summary.card(checkout.payment, is_theirs=True)
    if borne.out and borne.yours:
        words = _("{yours} of it is yours. When a mate pays, their share goes back to {card}.")
    elif borne.out:
        words = _("When a mate pays, their share goes back to {card}.")
    elif any(line.came_back for line in all_lines):
        words = _(
            "The bank sent back all or part of what went to your card. You need not do anything: it is sent again,"
            " or paid another way."
        )
    elif any(line.status == ShareStatus.PAID for line in all_lines):
        words = _("What your mates paid goes back to {card}.")
    elif borne.paid:
        words = _("What your mates paid is back on {card}.")
    else:
        words = _("No mate pays a part of it. It stays on {card}.")
    return words.format(card=card, yours=money.for_payer(borne.yours, checkout.currency))


def _sums(borne: Borne, currency: str) -> list[dict[str, str]]:
    """Return the three sums, which come to the total."""
    looks = {"mine": borne.yours, "out": borne.out, "paid": borne.paid}
    labels = {"mine": _("Yours"), "out": _("Still out"), "paid": _("Mates paid")}
    return [
        {"look": look, "label": labels[look], "amount": money.for_payer(amount, currency)}
        for look, amount in looks.items()
    ]


def _parts(checkout: Checkout, shares: Sequence[PaymentRequest], all_lines: Sequence[Line]) -> list[Part]:
    """Return the parts of the bar; who has nothing to pay has none."""
    amounts = [checkout.amount - sum(share.amount for share in shares), *(share.amount for share in shares)]
    drawn = zip(all_lines, share_bar.places(amounts), strict=True)
    is_large = len(all_lines) >= MANY
    return [_part(line, x, width, is_large=is_large) for line, (x, width) in drawn if width]


def _part(line: Line, x: float, width: float, *, is_large: bool) -> Part:
    letters = _("You") if line.is_lead else line.initial
    has_room = not is_large and width >= (ROOM_FOR_YOU if line.is_lead else people.ROOM)
    return Part(
        line=line,
        x=f"{x:.3f}",
        width=f"{width:.3f}",
        letters=letters if has_room else "",
        icon=_icon(line) if has_room else "",
    )


def _icon(line: Line) -> str:
    return "ring" if line.look == "taken" else lines.ICON_ON_BAR.get(line.status, "")
