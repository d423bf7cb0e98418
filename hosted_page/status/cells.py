"""The viewers of an order's pages, the situations of its money, and the cells of the table of pages.

hosted_page/status/table.py contains the table. Rule page.viewer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

Words = str | Promise
Paragraph = Words | tuple[Words, ...]


class Viewer(StrEnum):
    """The kind of person who looks at a page, as far as the service can know it."""

    LEAD = "the lead"
    PAID = "a mate who paid"
    HOLDER = "a mate who is asked for a share"
    REFUSED = "a mate who refused"
    FORMER = "a mate who is no longer asked"
    LATE = "a mate whose link has expired"
    PAY_LINK = "a person with only a share’s link"
    ORDER_LINK = "a person with only the order’s link"
    GROUP_LINK = "a person with only the group link"


class Situation(StrEnum):
    """Where the money of the order is or, while a card is paying a share, where the money of this share is."""

    UNPAID = "the order is not paid"
    COLLECTING = "the lead gets everyone in first"
    SUSPENDED = "the shop cannot take payments"
    STOPPED = "the shop cannot take payments, and the lead has not paid"
    ALL_IN = "every mate is in, and the shop does not have the money yet"
    CONFIRM = "the bank asks the payer to confirm"
    CHECKING = "the bank has not answered yet"
    SILENT = "the bank has not answered for a minute"
    PLEDGED = "a mate’s card is held, and the lead has not paid yet"
    PLEDGE_CHECKED = "a mate’s card is held, and the shop is checking the order"
    TAKING = "the money of a share is being taken"
    TAKING_SILENT = "the money of a share is being taken, and the bank has not answered for a minute"
    HELD = "the money is held"
    ASKED = "the shop has asked for the money"
    CANCELLED = "the shop cancelled before the payment"
    RELEASING = "the hold is being released"
    RELEASED = "the hold is released"
    EXPIRED = "the order has expired"
    PAID = "the shop has the money"
    REIMBURSED = "the lead has got the share back"
    CLAIMED = "another person has taken the share"
    ALL_TAKEN = "every share is taken or paid"
    ALL_PAID = "mates have paid every share"
    NO_SHARE_LEFT = "no share is left to pay"
    NOT_ASKED = "the lead asks for no share"
    LINKS_EXPIRED = "the links have expired"
    DISPUTED = "a bank is reviewing a payment"
    BANK_RETURNED = "a bank has returned a payment"
    REFUNDED_OUTSIDE = "the shop refunded a payment itself"
    REFUNDING = "a refund is on its way"
    REFUND_FAILED = "a refund has failed"
    REFUNDED = "the order is refunded"
    REFUND_RETURNED = "a card has returned the refund"


@dataclass(frozen=True)
class Cell:
    """The texts of a page for one viewer in one situation.

    Texts can contain names of values in braces, such as "{amount}".

    - `state`: the name of the state for the page's template and scripts. For a step of the payment, it is "step".
    - `money`: paragraphs about the money, each with one or more sentences
    - `action`: what the viewer can do next on this page, or "" if no action is possible
    - `title`: the title of the notice that replaces the paragraphs
    - `note`: a sentence in small print
    - `place`: where the money is: "card", "hold" or "shop"
    - `is_live`: the page reloads itself, because the situation can change without an action of the viewer
    """

    state: str
    headline: Words
    money: tuple[Paragraph, ...] = ()
    action: Words = ""
    title: Words = ""
    note: Words = ""
    place: str = ""
    is_on_its_way: bool = False
    is_live: bool = False

    def paragraphs(self, values: Mapping[str, str]) -> list[SafeString]:
        """Return the paragraphs as HTML, with their values filled in."""
        return [fill(paragraph, values) for paragraph in self.money]


def fill(paragraph: Paragraph, values: Mapping[str, str]) -> SafeString:
    """Return a paragraph as HTML, with its values filled in. The values are escaped."""
    sentences = paragraph if isinstance(paragraph, tuple) else (paragraph,)
    words = " ".join(str(sentence) for sentence in sentences)
    return format_html(words, **values) if values else conditional_escape(words)


def cell(state: str, headline: Words, *money: Paragraph, **fields: Any) -> Cell:
    """Return a cell. `fields` are the values of other fields of Cell."""
    return Cell(state, headline, money, **fields)


def live_cell(state: str, headline: Words, *money: Paragraph, **fields: Any) -> Cell:
    """Return the cell of a page that reloads itself."""
    return Cell(state, headline, money, is_live=True, **fields)


def step(action: Words, *notice: Paragraph) -> Cell:
    """Return the cell for a viewer who sees a step of the payment, with a notice above the step."""
    return Cell("step", action, notice, action=action)


def closed(headline: Words, *sentences: Words) -> Cell:
    """Return the cell for a link that has ended. Its sentences are joined into one paragraph."""
    return Cell("link_ended", headline, (sentences,))


def paused(*sentences: Words) -> Cell:
    """Return the cell for a link that accepts no payment now but might accept one later."""
    return Cell("paused", _("Nothing to pay now"), (sentences,), is_live=True)
