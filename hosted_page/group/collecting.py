"""Shows the lead's page while mates pledge.

The page shows which mates have pledged, and how much the lead covers by paying now. Rules pledge.page, pledge.choice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from checkout import current_checkouts
from checkout.group import pledging, share_changes
from checkout.models import Checkout, PaymentRequest
from checkout.states import ShareStatus
from hosted_page import ended_pledges, payer, rendering, share_items, summary
from hosted_page.group import bill_bar, group_link, group_members, line_looks
from hosted_page.group.group_members import GroupBill
from hosted_page.payment_target import PaymentTarget, lead_name, wants_part
from hosted_page.status.cells import Situation, Viewer
from hosted_page.status.table import cell_of
from payments import money

COLLECTING = "collecting"  # query parameter of the page's automatic updates
# The texts while some mates have pledged and others have not.
CELL = cell_of(Situation.COLLECTING, Viewer.LEAD)
SHORT = timedelta(minutes=5)  # when less time is left, the badge says that time is running out
NOT_IN = (ShareStatus.OPEN, ShareStatus.PAYING)
ASKED = (*NOT_IN, ShareStatus.PLEDGED)


@dataclass(frozen=True)
class Line:
    """A person's line on the lead's page. A mate's badge says whether the mate has pledged.

    - `id`, `status`: the id and the status of the share. If the line has no "More", `status` is "".
    - `typed_name`: the name of the share as the lead typed it
    - `url`: the pay link, or "" if the share cannot be pledged now
    """

    name: str
    initial: str
    amount: str
    person: int
    look: str
    tone: str
    icon: str
    words: str
    items: str
    hint: str = ""
    id: str = "lead"
    status: str = ""
    typed_name: str = ""
    url: str = ""
    qr_url: str = ""

    @property
    def may_be_asked_again(self) -> bool:
        """Whether the lead can ask again for the share, which was declined or cancelled."""
        return self.status in share_changes.REOPENABLE_STATUSES

    @property
    def may_be_renamed(self) -> bool:
        """Whether the lead can change the name of the share."""
        return self.status in share_changes.RENAMABLE_STATUSES

    @property
    def may_be_kept(self) -> bool:
        """Whether the lead can choose to cover the share. This ends a pledge."""
        return self.status in (ShareStatus.OPEN, ShareStatus.DECLINED, ShareStatus.PLEDGED)

    @property
    def has_more(self) -> bool:
        """Whether the lead can change the share."""
        return self.may_be_asked_again or self.may_be_renamed or self.may_be_kept


@dataclass(frozen=True)
class Sums:
    """Parts of the order's amount in minor units: the lead's own part, the mates' pledges, and the rest."""

    yours: int
    pledged: int
    missing: int


def is_collecting(shares: Sequence[PaymentRequest]) -> bool:
    """Return whether the links to these shares of an unpaid order are open."""
    return any(share.status != ShareStatus.DRAFT for share in shares)


def is_being_split(target: PaymentTarget) -> bool:
    """Return whether the target is an unpaid order whose mates are asked to pledge shares."""
    if target.share is not None or not target.is_payable:
        return False
    return is_collecting(current_checkouts.shares_of(target.checkout))


def is_update(request: HttpRequest) -> bool:
    """Return whether the request is an automatic update of the page on which the lead waits for mates."""
    return COLLECTING in request.GET and wants_part(request)


def show_collecting(
    request: HttpRequest, target: PaymentTarget, shares: Sequence[PaymentRequest], *, refused: str = ""
) -> HttpResponse:
    """Show which mates have pledged. The page updates itself and keeps the lead signed in.

    `refused` says why the lead's change to a share was refused.
    """
    is_part = wants_part(request)
    context = _context(target, shares) | {
        "is_whole": not is_part,
        "refused": refused,
        "notice": None if is_part else _notice(request, target, shares),
        "leave": rendering.sign_out_of_live_page(request, target),
    }
    name, status = "_collect" if is_part else "collect", 422 if refused else 200
    response = rendering.render_page(request, target, name, context, status=status)
    payer.prolong(request, response, target.subject)
    return response


def _notice(
    request: HttpRequest, target: PaymentTarget, shares: Sequence[PaymentRequest]
) -> dict[str, str] | None:
    """Return the notice about pledges that were ended by a new split or by a stop of the shop, otherwise None."""
    is_changed = ended_pledges.CHANGED in request.GET
    notice = ended_pledges.notice_for_lead(target.checkout) if is_changed else None
    return notice or ended_pledges.notice_of_stop(target.checkout, shares)


def _context(target: PaymentTarget, shares: Sequence[PaymentRequest]) -> dict[str, Any]:
    checkout, now = target.checkout, current_checkouts.read_at(target.checkout)
    sums = _sums_of(checkout, shares)
    # Shares with free units are left out, because it is not known how many mates will take the units.
    asked_shares = [share for share in shares if share.status in ASKED and not share.has_free_units(now)]
    count = sum(share.status == ShareStatus.PLEDGED for share in shares)
    is_everyone_in = count > 0 and not sums.missing
    return {
        "state": f"in-{count}-of-{len(asked_shares)}",
        "heading": _heading(checkout, sums, count, len(asked_shares), is_everyone_in=is_everyone_in),
        "sentence": _sentence(checkout, sums, count, _missing_names(shares, now)),
        **_time_left(checkout, now),
        "until": summary.short_time(checkout.payable_until, summary.zone_of(checkout)),
        "group": _bill_of(checkout, shares, now),
        "sums": _labelled_sums(checkout, sums),
        "lines": [_leads_line(checkout, sums), *_lines(checkout, shares, now)],
        "total": _display(checkout, checkout.amount),
        "everyone": is_everyone_in,
        "is_someone_in": count > 0,
        "one_link": group_link.group_link_of(checkout, shares),
        "poll_url": f"{target.auto_reload_url}&{COLLECTING}=1",
        "pay_url": target.address("card"),
        **_pay_words(checkout, sums, is_everyone_in=is_everyone_in),
        **_form_addresses(target),
    }


def _form_addresses(target: PaymentTarget) -> dict[str, str]:
    """Return the addresses of the lead's actions. The service texts no mate before the payment."""
    steps = ("cancel_share", "rename_share", "ask_again")
    addresses = {f"{step}_action": target.address(step) for step in steps}
    return addresses | {"change_split_url": target.address("split"), "text_share_action": ""}


def _bill_of(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime) -> GroupBill:
    """Return the bill for the bar. The lead's part shows "You" if it is wide enough, otherwise a letter."""
    bill = group_members.bill_for_claim(checkout, shares, "", now)
    lead, *mates = bill.people
    if float(lead.width) >= bill_bar.YOU_WIDTH:
        lead = replace(lead, initial=_("You"))
    return replace(bill, people=[lead, *mates])


def _sums_of(checkout: Checkout, shares: Sequence[PaymentRequest]) -> Sums:
    pledged = sum(share.amount for share in shares if share.status == ShareStatus.PLEDGED)
    missing = sum(share.amount for share in shares if share.status in NOT_IN)
    return Sums(checkout.amount - pledged - missing, pledged, missing)


def _heading(checkout: Checkout, sums: Sums, count: int, mate_count: int, *, is_everyone_in: bool) -> str:
    if count == 0:
        return _("No one else is in yet")
    if not is_everyone_in:
        words = _("{count} of {asked} mates is in") if count == 1 else str(CELL.headline)
        return words.format(count=count, asked=mate_count)
    return _("Everyone’s in. Your share is {amount}").format(amount=_display(checkout, sums.yours))


def _missing_names(shares: Sequence[PaymentRequest], now: datetime) -> list[str]:
    """Return the name of each mate who has not pledged, or "" for a mate without a name.

    Free units count as two mates, because it is not known how many mates will take them.
    """
    missing = [share for share in shares if share.status in NOT_IN]
    return ["" if share.has_free_units(now) else share.shown_name for share in missing] + [
        "" for share in missing if share.has_free_units(now)
    ]


def _sentence(checkout: Checkout, sums: Sums, count: int, missing: Sequence[str]) -> SafeString:
    """Return the sentence that says what happens to the money if the lead pays now.

    `missing` has the name of each mate who has not pledged.
    """
    if count == 0:
        return SafeString(
            _("Share the link. Shares are held on your mates’ cards, and taken only if you pay.")
        )
    if len(missing) == 1 and missing[0]:
        words = _("If you pay now, you cover {name}’s <strong>{amount}</strong> until {name} pays.")
        return format_html(words, name=missing[0], amount=_display(checkout, sums.missing))
    if sums.missing:
        return CELL.paragraphs({"amount": _display(checkout, sums.missing)})[0]
    return format_html(
        ngettext(
            "Your card is held for the whole <strong>{total}</strong> first. Once {shop} confirms, we take your"
            " mate’s share, and <strong>{amount}</strong> goes back to your card.",
            "Your card is held for the whole <strong>{total}</strong> first. Once {shop} confirms, we take your"
            " mates’ shares, and <strong>{amount}</strong> goes back to your card.",
            count,
        ),
        total=_display(checkout, checkout.amount),
        shop=checkout.merchant.name,
        amount=_display(checkout, sums.pledged),
    )


def _time_left(checkout: Checkout, now: datetime) -> dict[str, Any]:
    left = checkout.payable_until - now
    minutes = max(0, math.ceil(left.total_seconds() / 60))
    words = ngettext("{count} minute left", "{count} minutes left", minutes).format(count=minutes)
    return {"time_left": words, "is_short": left < SHORT}


def _labelled_sums(checkout: Checkout, sums: Sums) -> list[dict[str, str]]:
    rows = (
        ("mine", _("Yours"), sums.yours),
        ("pledged", pgettext("a share", "In"), sums.pledged),
        ("out", _("Not in yet"), sums.missing),
    )
    return [
        {"look": look, "label": label, "amount": _display(checkout, amount)} for look, label, amount in rows
    ]


def _pay_words(checkout: Checkout, sums: Sums, *, is_everyone_in: bool) -> dict[str, str]:
    """Return the label of the button, and the line above it.

    The label is always short, so that the button keeps its size.
    """
    if sums.missing:
        note = _("You’d cover {amount}").format(amount=_display(checkout, sums.missing))
        return {"pay_note": note, "pay_label": _("Pay anyway")}
    label = _("Pay {amount}").format(amount=_display(checkout, checkout.amount))
    return {"pay_note": _("Everyone’s in") if is_everyone_in else "", "pay_label": label}


def _leads_line(checkout: Checkout, sums: Sums) -> Line:
    name, amount = lead_name(checkout), _display(checkout, sums.yours)
    return Line(name, name[:1].upper(), amount, 1, "mine", "", "", _("You"), "")


def _lines(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime) -> list[Line]:
    free_shares = [row for row in shares if row.status == ShareStatus.OPEN and not row.is_kept(now)]
    withdrawals = pledging.withdrawn_at([row.pk for row in free_shares if row.mate_id])
    zone = summary.zone_of(checkout)
    pledged = pledging.pledged_at([row.pk for row in shares if row.status == ShareStatus.PLEDGED])
    hints = {share_uuid: summary.short_time(at, zone) for share_uuid, at in pledged.items()} | {
        share_uuid: format_html(_("left at {time}"), time=summary.short_time(at, zone))
        for share_uuid, at in withdrawals.items()
    }
    return [replace(_line(share, checkout, now), hint=hints.get(share.pk, "")) for share in shares]


def _line(share: PaymentRequest, checkout: Checkout, now: datetime) -> Line:
    look, tone, icon, words = line_looks.LOOK_BY_STATUS[share.status]
    if share.status in NOT_IN:
        is_claimed = share.status == ShareStatus.PAYING or share.is_kept(now)
        look, tone, icon, words = (
            line_looks.CLAIMED_LOOK if is_claimed else ("out", "still", "dashes", _("Not in yet"))
        )
    name = share.shown_name or group_members.share_name(share)
    initial = group_members.share_mark(share)
    tint, amount = group_members.colour_number(share), _display(checkout, share.amount)
    items = share_items.in_words(checkout, share.units)
    line = Line(name, initial, amount, tint, look, tone, icon, str(words), items, id=str(share.pk))
    return line if share.has_free_units(now) else replace(line, **_more_fields(share, checkout))


def _more_fields(share: PaymentRequest, checkout: Checkout) -> dict[str, Any]:
    """Return the fields for the "More" of a line. An open share also has its link."""
    fields = {"status": share.status, "typed_name": share.name}
    if share.status != ShareStatus.OPEN:
        return fields
    target = PaymentTarget(checkout, share)
    return fields | {"url": target.absolute(), "qr_url": target.address("qr")}


def _display(checkout: Checkout, amount: int) -> str:
    return money.display_for_payer(amount, checkout.currency)
