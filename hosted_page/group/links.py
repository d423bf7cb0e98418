"""The mates' shares and their pay links, as the lead sees them."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from checkout import reading
from checkout.models import Checkout, PaymentRequest
from checkout.states import SHARE_PAID, ShareStatus
from config.lib import clock
from hosted_page import summary
from hosted_page.payment_target import PaymentTarget
from payments import money

# How each status is shown: tone, icon and words.
TOLD: dict[str, tuple[str, str, str | Promise]] = {
    ShareStatus.DRAFT: ("still", "clock", gettext_lazy("Starts when confirmed")),
    ShareStatus.OPEN: ("still", "dashes", gettext_lazy("Not paid yet")),
    ShareStatus.PAYING: ("move", "ring", gettext_lazy("Paying")),
    ShareStatus.PAID: ("done", "check", gettext_lazy("Paid")),
    ShareStatus.REIMBURSED: ("done", "back", gettext_lazy("Back on your card")),
    ShareStatus.DECLINED: ("void", "slash", gettext_lazy("Said no")),
    ShareStatus.EXPIRED: ("void", "clock", gettext_lazy("Link ended")),
    ShareStatus.CANCELLED: ("void", "slash", gettext_lazy("Stays with you")),
    ShareStatus.REFUNDED: ("still", "back", gettext_lazy("Given back")),
}


@dataclass(frozen=True)
class Wrong:
    """Why a share's link was not sent, and the number that was typed."""

    share_id: str
    phone: str
    error: str


@dataclass(frozen=True)
class Row:
    """A mate's line. `url` and `qr_url` are empty if there is nothing to pay any more.

    `sent_to` is the masked number that the link went to, `remind_from` when a reminder may follow, "" for now.
    """

    id: str
    name: str
    initial: str
    amount: str
    tone: str
    icon: str
    words: str | Promise
    url: str
    qr_url: str
    sent_to: str
    remind_from: str
    wrong: Wrong | None


@dataclass(frozen=True)
class Links:
    """The mates' shares, and what they come to."""

    rows: list[Row]
    yours: str
    back: str
    asked: str
    until: str


def of(checkout: Checkout, wrong: Wrong | None = None) -> Links | None:
    """Return the mates' shares, None if there are none; `wrong` is shown beside its share."""
    shares = reading.shares(checkout)
    if not shares:
        return None
    paid = sum(share.amount for share in shares if share.status in SHARE_PAID)
    asked = sum(share.amount for share in shares)
    ends = [share.expires_at for share in shares if share.status == ShareStatus.OPEN]
    return Links(
        rows=[_row(checkout, share, wrong) for share in shares],
        yours=money.for_payer(checkout.amount - asked, checkout.currency),
        back=money.for_payer(paid, checkout.currency) if paid else "",
        asked=money.for_payer(asked, checkout.currency),
        until=summary.day(max(end for end in ends if end), checkout) if ends else "",
    )


def _row(checkout: Checkout, share: PaymentRequest, wrong: Wrong | None) -> Row:
    tone, icon, words = TOLD[share.status]
    url = PaymentTarget(checkout, share).absolute() if share.status == ShareStatus.OPEN else ""
    name = share.name or _("Mate {number}").format(number=share.position - 1)
    again_at = share.next_reminder_at
    return Row(
        id=str(share.pk),
        name=name,
        initial=share.name[:1].upper() or str(share.position),
        amount=money.for_payer(share.amount, checkout.currency),
        tone=tone,
        icon=icon,
        words=words,
        url=url,
        qr_url=PaymentTarget(checkout, share).address("qr") if url else "",
        sent_to=f"•••• {share.phone[-4:]}" if share.phone else "",
        remind_from=summary.day(again_at, checkout) if again_at and again_at > clock.now() else "",
        wrong=wrong if wrong and wrong.share_id == str(share.pk) else None,
    )
