"""Builds the group link as the lead shares it: the text that is sent, and the address (rule group.link)."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from checkout.models import Checkout, GroupLink, PaymentRequest
from checkout.states import ShareStatus
from hosted_page import summary
from hosted_page.payment_target import absolute, lead_name
from payments import money


@dataclass(frozen=True)
class SharedGroupLink:
    """The group link. `words` and `url` are sent to mates. `shown` is the URL for display, without its scheme."""

    words: str
    url: str
    shown: str
    qr_page: str
    qr_svg: str


def group_link_of(checkout: Checkout, shares: Sequence[PaymentRequest]) -> SharedGroupLink | None:
    """Return the group link of an order with these shares, or None if no mate is asked for a share."""
    if not any(share.status in (ShareStatus.OPEN, ShareStatus.PAYING) for share in shares):
        return None
    link: GroupLink | None = getattr(checkout, "group_link", None)
    if link is None:  # the order was split by an earlier release, which had no group links
        return None
    amounts = {share.amount for share in shares}
    words = _("{name} · {title} · take your share")
    if len(amounts) == 1 and not any(share.units for share in shares):
        words = _("{name} · {title} · {amount}")
    if len(shares) > 1 and len(amounts) == 1 and not any(share.units for share in shares):
        words = _("{name} · {title} · {amount} each")
    url = absolute(reverse("group", args=[link.token]))
    return SharedGroupLink(
        words=words.format(
            name=lead_name(checkout),
            title=summary.title(checkout),
            amount=money.display_for_payer(min(amounts), checkout.currency),
        ),
        url=url,
        shown=url.partition("://")[2],
        qr_page=reverse("group_qr", args=[link.token]),
        qr_svg=reverse("group_qr_svg", args=[link.token]),
    )
