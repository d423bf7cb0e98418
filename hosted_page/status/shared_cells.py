"""Texts and cells that several rows of the table of pages share. Rule page.viewer."""

from django.utils.translation import gettext_lazy as _

from hosted_page.status.cells import Cell, Viewer, closed, live_cell

V = Viewer
Row = dict[Viewer, Cell]

NOT_CHARGED = _("You have not been charged.")
YOU_ARE_NOT_CHARGED = _("You have not been charged")
NOT_CHARGED_STRONG = _("<strong>You have not been charged.</strong>")
CANNOT_TAKE = _("{shop} can’t take payments right now")
NO_NEED = _("You have not been charged. You don’t need to do anything else.")
NO_NEED_TO_PAY = _("You don’t need to pay anything.")
NOTHING_MORE = _("No more payments are needed.")
NO_MONEY_YET = _("No money has been taken yet. This can take up to a minute.")
UNTIL_CONFIRMED = _("No money is held or taken until the payment is confirmed.")
DO_NOT_PAY_AGAIN = _("Please don’t pay again.")
ORDER_ENDED = _("<strong>This order has ended.</strong>")
CLOSE_PAGE = _("You can close this page.")
SIGN_IN = _("Did you pay this? Sign in to see your receipt")
ANOTHER_CARD = _("Use another card")
BACK_TO_SHOP = _("Back to {shop}")
BANK_RETURNED = _("A bank has returned a payment for this order.")
ASK_SHOP = _("<strong>Ask <bdi>{shop}</bdi> whether your order is still valid.</strong>")
ASK_LEAD = _("Ask {name} whether the order is still valid.")
LINK_EXPIRED = _("This link has expired")
NO_LONGER_ASKED = _("{name} is no longer asking for this")
SHARE_IS_PAID = _("This share is paid")
REFUND_FAILED = _("The refund did not go through")
GOES_BACK = _("Your money is going back")
SOON_SHOWN = _("Your bank may take a few days to show it.")
TRIED_TO_REFUND = _("{shop} tried to refund this order, but the bank did not accept it.")
SENT_AGAIN = _("You don’t need to do anything. The money will be sent again or paid to you another way.")
RETURNED_REFUND = ("{returned}", SENT_AGAIN)


def _unpaid_shares(*, is_covered: bool) -> Row:
    """Return the cells for mates who are not asked any more. `is_covered` means that the lead bears their shares."""
    lead_sees_no = _("You have not been charged. {name} can see that you said no.")
    asked_until = _("{name} asked you for <strong>{amount}</strong> until {until}.")
    late = (NO_NEED, asked_until, _("{name} covers your share."))
    former = (NO_NEED, _("{name} covers your share of <strong>{amount}</strong>."))
    return {
        V.REFUSED: Cell("declined", _("You said no"), (lead_sees_no if is_covered else NO_NEED,)),
        V.LATE: closed(LINK_EXPIRED, *(late if is_covered else late[:2])),
        V.FORMER: closed(NO_LONGER_ASKED, *(former if is_covered else former[:1])),
    }


COVERED, NOT_COVERED = _unpaid_shares(is_covered=True), _unpaid_shares(is_covered=False)
NOT_OPEN = live_cell(
    "draft",
    _("Not open yet"),
    _(
        "{shop} has not confirmed {name}’s order yet. This link opens when the order is confirmed."
        " You have not been charged."
    ),
)
# No link expires before the capture.
_NOT_ASKED: Row = {V.REFUSED: NOT_COVERED[V.REFUSED], V.FORMER: NOT_COVERED[V.FORMER]}
NOT_OPEN_YET: Row = {V.HOLDER: NOT_OPEN, V.GROUP_LINK: NOT_OPEN} | _NOT_ASKED
NO_ONE_CHARGED = _("No one has been charged.")
HOLDS_RELEASED = _("Any hold for this order is released.")
NOT_COMPLETED = _("{shop} did not complete the order, and took no money.")
EXPIRED: Row = {
    V.REFUSED: NOT_COVERED[V.REFUSED],
    V.FORMER: closed(YOU_ARE_NOT_CHARGED, "{late}"),
    V.GROUP_LINK: closed(_("This order has expired"), "{late}", NO_ONE_CHARGED, HOLDS_RELEASED),
}
ENDED: Row = {
    V.REFUSED: NOT_COVERED[V.REFUSED],
    V.FORMER: closed(YOU_ARE_NOT_CHARGED, NOT_COMPLETED),
    V.GROUP_LINK: closed(_("This order has ended"), NOT_COMPLETED, NO_ONE_CHARGED, HOLDS_RELEASED),
}
