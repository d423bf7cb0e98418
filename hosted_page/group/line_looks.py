"""The look, icon and text of a person's line on the lead's bill, for each status of a share."""

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from checkout.states import SHARE_PAID, ShareStatus

# The look, tone, icon and text of a share's line for each status. The look shows who bears the share, and
# whether the share is open.
LOOK_BY_STATUS: dict[str, tuple[str, str, str, str | Promise]] = {
    ShareStatus.DRAFT: ("out", "still", "clock", gettext_lazy("Starts when confirmed")),
    ShareStatus.OPEN: ("out", "still", "dashes", gettext_lazy("Not paid yet")),
    ShareStatus.PLEDGED: ("pledged", "move", "card", pgettext_lazy("a share", "In")),
    ShareStatus.PAYING: ("taken", "move", "ring", gettext_lazy("Paying")),
    ShareStatus.PAID: ("paid", "done", "check", gettext_lazy("Paid")),
    ShareStatus.REIMBURSED: ("paid", "done", "back", gettext_lazy("Back on your card")),
    ShareStatus.DECLINED: ("mine", "void", "cross", gettext_lazy("Said no")),
    ShareStatus.EXPIRED: ("mine", "void", "clock", gettext_lazy("Link expired")),
    ShareStatus.CANCELLED: ("mine", "void", "card", gettext_lazy("You cover it")),
    ShareStatus.REFUNDED: ("mine", "still", "back", gettext_lazy("Returned")),
}
PAUSED_LOOK: tuple[str, str | Promise] = (
    "pause",
    gettext_lazy("Paused"),
)  # while a dispute is open, or the shop is stopped
# Used after the lead's own bank has returned money. The service then no longer knows who bears a share, so
# these looks do not show it.
LOOK_AFTER_LOST_DISPUTE: dict[str, tuple[str, str, str, str | Promise]] = {
    **dict.fromkeys(SHARE_PAID, LOOK_BY_STATUS[ShareStatus.PAID]),
    ShareStatus.DECLINED: ("ended", *LOOK_BY_STATUS[ShareStatus.DECLINED][1:]),
    ShareStatus.EXPIRED: ("ended", *LOOK_BY_STATUS[ShareStatus.EXPIRED][1:]),
    ShareStatus.CANCELLED: ("ended", "void", "slash", gettext_lazy("Cancelled")),
    ShareStatus.REFUNDED: ("ended", *LOOK_BY_STATUS[ShareStatus.REFUNDED][1:]),
}
# The tone, icon and text for a reimbursement that the lead's card returned.
RETURNED_LOOK: tuple[str, str, str | Promise] = ("move", "back", gettext_lazy("Sent back"))
CLAIMED_LOOK = ("taken", "move", "ring", pgettext_lazy("a share", "Taken"))  # claimed through the group link
BEING_TAKEN = gettext_lazy("Being taken")  # the text for a pledge that is being captured
ICON_ON_BAR: dict[str, str] = {
    ShareStatus.PLEDGED: "card",
    ShareStatus.PAYING: "ring",
    ShareStatus.PAID: "check",
    ShareStatus.REIMBURSED: "check",
    ShareStatus.DECLINED: "cross",
}


def describe_aloud(status: str, name: str, amount: str) -> str:
    """Return what a screen reader says when a share gets this status, "" if it says no sentence."""
    match status:
        case ShareStatus.PAID:
            words = _("{name} has paid {amount}.")
        case ShareStatus.REIMBURSED:
            words = _("{name} has paid {amount}. We have refunded this amount to your card.")
        case ShareStatus.DECLINED:
            words = _("{name} said no.")
        case ShareStatus.PAYING:
            words = _("{name} is paying.")
        case ShareStatus.OPEN:
            words = _("{name} is asked for {amount}.")
        case _:
            return ""
    return words.format(name=name, amount=amount)


def hint_after_lost_dispute(reimbursed_at: str) -> str:
    """Return where the money of a paid share is, after the lead's bank has returned the order's money.

    `reimbursed_at` is when the share was reimbursed, "" if it was not. The shop keeps money that was not
    reimbursed. It covers a part of the shop's loss.
    """
    if not reimbursed_at:
        return _("kept by the shop")
    return format_html(_("{time}, went to your card"), time=reimbursed_at)
