"""Offers the lead to text reminders to mates on the last day of an order's links (rule share.last_day)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from babel.lists import format_list
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, to_locale

from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus
from hosted_page import link_deadline, summary
from hosted_page.group.bill_lines import Line
from payments import money


@dataclass(frozen=True)
class LastDay:
    """When the links expire, the unpaid amount, and the mates who have not paid.

    - `to_remind`: mates who can be reminded by text now
    - `reminded`: mates who got a text less than a day ago
    - `others`: mates whose number the service does not have
    """

    at: SafeString
    amount: str
    to_remind: list[Line]
    reminded: list[Line]
    others: list[Line]

    @property
    def reminded_names(self) -> SafeString:
        """Names of the mates who were reminded today, joined into a list for a sentence."""
        return _list_names(self.reminded)

    @property
    def others_names(self) -> SafeString:
        """Names of the mates without a number, joined into a list for a sentence."""
        return _list_names(self.others)

    @property
    def seen(self) -> str:
        """Text that changes whenever the shown content changes."""
        groups = (self.to_remind, self.reminded, self.others)
        return " · ".join([self.amount, *(",".join(line.name for line in lines) for lines in groups)])


def _list_names(lines: Sequence[Line]) -> SafeString:
    """Return the names as a list in the active language, such as "Finn, Priya and نور"."""
    names = [format_html("<bdi>{}</bdi>", line.name) for line in lines]
    return SafeString(format_list(names, locale=to_locale(get_language() or "en")))


def last_day_offer(
    checkout: Checkout, shares: Sequence[PaymentRequest], lines: Sequence[Line], now: datetime
) -> LastDay | None:
    """Return the offer to remind mates. Return None before the links' last day, or if no share is open.

    `lines` are the bill's lines.
    """
    end = link_deadline.ends_at(shares)
    if end is None or end - now > link_deadline.LAST_DAY:
        return None
    unpaid = [share for share in shares if share.status == ShareStatus.OPEN]
    ids = {str(share.pk) for share in unpaid}
    unpaid_lines = [line for line in lines if line.id in ids]
    lines_with_number = [line for line in unpaid_lines if line.sent_to]
    return LastDay(
        at=summary.day_with_time(end, checkout),
        amount=money.display_for_payer(sum(share.amount for share in unpaid), checkout.currency),
        to_remind=[line for line in lines_with_number if not line.remind_from],
        reminded=[line for line in lines_with_number if line.remind_from],
        others=[line for line in unpaid_lines if not line.sent_to],
    )
